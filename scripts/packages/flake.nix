# nix run 'github:zsbx/zsbx?dir=scripts/packages'
{
  description = "Run commands under limits that the kernel enforces";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in {
      packages = each (pkgs: {
        default = pkgs.buildGo126Module {
          pname = "zsbx";
          version = self.shortRev or "unknown";
          src = ../..; # the whole repository: nix copies it with this directory
          vendorHash = "sha256-XcWPUjYhehNqVzJtwetR4gtYzmfykosigMQIDda5+FM="; # TestVendorHash says which it is
          subPackages = [ "." ];
          env.CGO_ENABLED = 0;
          ldflags = [ "-s" "-w" ];
          nativeBuildInputs = [ pkgs.installShellFiles ];
          doCheck = false; # its tests need what a build of nix has not
          postInstall = ''
            installManPage man/*.1
            installShellCompletion --bash --name zsbx completions/zsbx.bash
            installShellCompletion --zsh completions/_zsbx
            installShellCompletion --fish completions/zsbx.fish
          '';
          meta = {
            description = "Run commands under limits that the kernel enforces";
            homepage = "https://github.com/zsbx/zsbx";
            license = pkgs.lib.licenses.mit;
            mainProgram = "zsbx";
          };
        };
      });
    };
}
