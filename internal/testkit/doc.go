// Package testkit is what the tests of several packages share: what to do where
// the machine lacks a feature, and how to wait for something.
//
// A test that needs a kernel feature is skipped where the feature is missing,
// and fails there if the environment variable ZSBX_TEST_REQUIRE names it. So a
// machine that is known to have everything, as continuous integration's is,
// can't lose a test without a word.
//
// It holds on every system. It finds out nothing itself: a test asks the package
// that it tests, and says here what that package did not find. No package that
// is part of zsbx may import it.
package testkit
