package enforce

// Ruleset is the Landlock ruleset of a Plan.
type Ruleset struct{}

// Filter is the seccomp filter of a Plan.
type Filter struct{}
