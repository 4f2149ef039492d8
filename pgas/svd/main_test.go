package svd

import "flag"

var seedCount = flag.Int("histories", 300, "how many histories of TestSeededHistories to play")

func seeds() int { return *seedCount }
