// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// installer returns the objects of the dist/install.yaml that is made with arguments.
func installer(t *testing.T, args ...string) objects {
	t.Helper()
	read(t, filepath.Join(root, "config"))
	read(t, filepath.Join(root, "hack/controlplane"))
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/installer"), args...)
	command.Env = append(os.Environ(), "OUT="+folder)
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("making install.yaml: %v: %s", err, said)
	}
	return render(t, "cat", filepath.Join(folder, "install.yaml"))
}

func TestTheInstallerHoldsWhatTheChartInstalls(t *testing.T) {
	same(t, installer(t), helm(t, "vision-system"))
}

func TestTheInstallerOfAVersionHoldsWhatTheChartInstallsOfIt(t *testing.T) {
	same(t, installer(t, "v9.8.7-rc.1"), helm(t, "vision-system", "--set", "image.tag=v9.8.7-rc.1,runtime.image.tag=v9.8.7-rc.1"))
}

func TestTheInstallerRefusesWhatIsNoTag(t *testing.T) {
	for _, version := range []string{"a b", "a/b", "-a", "a,b", "a@sha256:0"} {
		command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/installer"), version)
		command.Env = append(os.Environ(), "OUT="+t.TempDir())
		if said, err := command.CombinedOutput(); err == nil {
			t.Errorf("%q: got no error: %s", version, said)
		}
	}
}
