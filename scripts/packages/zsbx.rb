# A Homebrew formula: brew install --HEAD ./scripts/packages/zsbx.rb
class Zsbx < Formula
  desc "Run commands under limits that the kernel enforces"
  homepage "https://github.com/zsbx/zsbx"
  license "MIT"
  head "https://github.com/zsbx/zsbx.git", branch: "main"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    system "go", "build", *std_go_args(ldflags: "-s -w")
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/zsbx.bash" => "zsbx"
    zsh_completion.install "completions/_zsbx"
    fish_completion.install "completions/zsbx.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/zsbx version") unless build.head?
    system bin/"zsbx", "check", "--help"
  end
end
