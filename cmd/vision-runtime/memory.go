// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/engine"
)

// besidesMemory is what a runtime takes beside what is in flight: 64 MiB for
// replies, the cache in memory and the program itself; webhook/inject's
// DefaultResources reckon with it too.
const besidesMemory = 64 << 20

// shares is among how many the rest of a container's memory is divided: bodies of
// model requests, images that are looked at, and the smaller copy of an image that
// may be made at a time. Each may take what is in flight at most.
const shares = 3

// sizeInFlight is what may be in flight where no flag says so: a third of what a
// container's memory limit leaves beside 64 MiB, but at least the least that the
// flag takes, and engine.DefaultMaxHeldBytes where there is no limit. Of the 256 MiB
// that the webhook gives by default, that is 64 MiB. root is the file system's.
func sizeInFlight(root fs.FS) int64 {
	limit, ok := memoryLimit(root)
	if !ok {
		return engine.DefaultMaxHeldBytes
	}
	return max((limit-besidesMemory)/shares, minInFlightBytes)
}

// noLimit is from which number on cgroup v1 means none: it says the largest whole
// number of pages.
const noLimit = math.MaxInt64 / 2

// memoryLimit is the container's memory limit in bytes, as the kernel has it
// (cgroup v2's memory.max, else v1's memory.limit_in_bytes); ok is false without one.
func memoryLimit(root fs.FS) (limit int64, ok bool) {
	own, _ := fs.ReadFile(root, "proc/self/cgroup") // without it, the container's own root is looked at alone
	v2, v1 := "", ""
	for line := range strings.Lines(string(own)) {
		// hierarchy:controllers:path (cgroups(7))
		switch parts := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(parts) != 3:
		case parts[1] == "":
			v2 = parts[2]
		case strings.Contains(","+parts[1]+",", ",memory,"):
			v1 = parts[2]
		}
	}
	const mount = "sys/fs/cgroup"
	for _, file := range []string{
		path.Join(mount, v2, "memory.max"), path.Join(mount, "memory.max"),
		path.Join(mount, "memory", v1, "memory.limit_in_bytes"), path.Join(mount, "memory/memory.limit_in_bytes"),
	} {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && n < noLimit {
			return n, true
		}
	}
	return 0, false
}
