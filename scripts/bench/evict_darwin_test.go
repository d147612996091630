package bench

import "os"

// evict does nothing: macOS has no posix_fadvise(2).
func evict(*os.File) {}
