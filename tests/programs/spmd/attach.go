//go:build attach

package main

import _ "evenkeel/runtime/attach"
