// Package object writes JSON: records, the log, and what --json prints. encoding/json
// would do for the records, but its first use in a process takes 0.3 ms or more, and
// every run of zsbx writes records.
//
// Names and command lines come from others, so characters that could control a terminal
// are escaped. encoding/json leaves U+0080 to U+009F and invisible characters as they
// are. A byte that is not UTF-8 becomes a lone surrogate, as with Python's
// surrogateescape (PEP 383): 0x80 is \udc80.
package object
