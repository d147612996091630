# nix run 'github:zsbx/zsbx?dir=scripts/packages'
{
  description = "Run commands under limits that the kernel enforces";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  inputs.source = {
    url = "github:zsbx/zsbx";
    flake = false;
  };

  outputs = { self, nixpkgs, source }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in {
      packages = each (pkgs: {
        default = pkgs.buildGo126Module {
          pname = "zsbx";
          version = source.shortRev or "unknown";
          src = source;
          vendorHash = pkgs.lib.fakeHash; # nix prints the right one the first time
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
