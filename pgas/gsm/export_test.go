package gsm

import "evenkeel/runtime/fabric"

// Believe has a key's owner take a task for one that has the key.
func Believe(k *Key, task fabric.Task) { k.members = append(k.members, task) }
