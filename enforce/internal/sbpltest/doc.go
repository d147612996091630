// Package sbpltest executes Seatbelt profiles in tests, on any system.
//
// It reads the Scheme subset that profiles are written in, runs it against its
// own table of operations, and answers which rule decides about an operation
// on a target, in the order that was observed on macOS:
//
//   - the filtered rules of the very operation, the newest first;
//   - the operation's terminal: the last rule without filter, or else what is
//     built in, which is an answer or a jump to a more general operation;
//   - there the same again, up to "default".
//
// What the compiler of macOS refuses is an error here too: unknown operations
// and filters, a filter that does not belong to the operation, a subpath that
// ends in a slash, a modifier given twice, a literal of 256 bytes.
//
// It is a model, made from descriptions and measurements of others. It cannot
// show that a kernel agrees, which operations a program causes, how paths are
// made canonical, or that the dialects of regular expressions are one.
package sbpltest
