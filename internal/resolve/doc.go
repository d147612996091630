// Package resolve turns a policy into what it means on one machine: a Resolved, with canonical
// paths, the environment and the limits. It says whether an access is allowed and by which rule.
//
// It has what presets, the baseline and wide rules must not open: secrets, what is on PATH, what
// programs outside run or trust. It sees paths only through a host.Host, and changes nothing.
package resolve
