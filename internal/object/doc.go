// Package object writes JSON: records, the log, and what --json prints. encoding/json
// would do for the records, but its first use in a process takes 0.3 ms and more, and
// they are written in every run of zsbx.
//
// No character in it can steer a terminal, as names and command lines are somebody
// else's; encoding/json leaves U+0080 to U+009F and what can't be seen as they are. A
// byte that is not UTF-8 becomes a lone surrogate, as Python's surrogateescape has it
// (PEP 383): 0x80 is \udc80.
package object
