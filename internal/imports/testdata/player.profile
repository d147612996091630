# Firejail profile for a player
include player.local
noblacklist ${HOME}/.config/player
noblacklist ${MUSIC}
blacklist ${HOME}/.config/player
blacklist ${RUNUSER}/wayland-*
blacklist /usr/libexec
include disable-common.inc
whitelist ${HOME}/.config/player
whitelist ${MUSIC}
read-only ${MUSIC}
read-only ${HOME}/.config/player/keys
noexec ${HOME}/.config/player
caps.drop all
net none
nonewprivs
protocol unix
seccomp !chroot
apparmor
private-tmp
private-etc alternatives,fonts
dbus-user none
hostname box
timeout 01:30:00
env LC_ALL=C
?HAS_X11: x11 none
blacklist ${PATH}/sudo
