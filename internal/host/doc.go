// Package host looks at the machine: files, links, directories, repositories, the user and the
// working directory. It decides nothing and knows no policy.
//
// What is there is an answer with three values, Present, Absent and Unknown. A command may change
// the modes of its directories, so what can't be looked at is never taken for nothing.
package host
