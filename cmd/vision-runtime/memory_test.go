// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/fstest"
)

func TestWhatMayBeInFlightIsSizedFromTheContainersLimit(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"without any limit", nil, 64 << 20},
		{"of 256 MiB, as the webhook sets it", map[string]string{"sys/fs/cgroup/memory.max": "268435456\n"}, 64 << 20},
		{"of 1 GiB", map[string]string{"sys/fs/cgroup/memory.max": "1073741824\n"}, 320 << 20},
		{"of less than the program takes", map[string]string{"sys/fs/cgroup/memory.max": "33554432\n"}, 1 << 20},
		{"that is none", map[string]string{"sys/fs/cgroup/memory.max": "max\n"}, 64 << 20},
		{"below a path of its own", map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/kubepods/pod1/c1/memory.max": "268435456\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 64 << 20},
		{"above a path without one", map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/kubepods/pod1/c1/memory.max": "max\n", "sys/fs/cgroup/memory.max": "469762048\n",
		}, 128 << 20},
		{"of cgroup v1", map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "469762048\n"}, 128 << 20},
		{"of cgroup v1 below a path", map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/c1\n", "sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes": "469762048\n",
		}, 128 << 20},
		{"that is none of cgroup v1", map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 64 << 20},
		{"that is no number", map[string]string{"sys/fs/cgroup/memory.max": "plenty\n"}, 64 << 20},
	} {
		root := fstest.MapFS{}
		for name, text := range test.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := sizeInFlight(root); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
