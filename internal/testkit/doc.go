// Package testkit has what the tests of several packages share: what to do if the machine
// lacks a feature, and how to wait for something.
//
// Package internet, below it, has names and servers for tests of the network.
//
// A test that needs a kernel feature is skipped if the feature is missing, and fails if
// the environment variable ZSBX_TEST_REQUIRE names it. So a machine that is known to have
// everything, such as that of continuous integration, can't skip a test silently.
//
// It is for every system. It probes nothing itself: a test asks the package that it tests,
// and reports here what that package did not find. No package that is part of zsbx may
// import it.
package testkit
