// Package quiet has SIGQUIT and SIGABRT from outside end zsbx as they end any other
// program (signal(7)). Go's own handlers print what all goroutines do.
//
// That must be done before other packages are initialised, which takes half of
// zsbx's start. So it is no function to call: Go initialises packages in the order
// of their import paths, those first that import nothing.
package quiet
