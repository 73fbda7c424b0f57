// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// uncommented is a copy of config in which a line of a file is no comment.
func uncommented(t *testing.T, lines map[string]string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(root, "config"))); err != nil {
		t.Fatal(err)
	}
	for file, line := range lines {
		path := filepath.Join(copied, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(data, []byte("# "+line+"\n")) != 1 {
			t.Fatalf("%s has no line # %s", file, line)
		}
		if err := os.WriteFile(path, bytes.Replace(data, []byte("# "+line+"\n"), []byte(line+"\n"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

func TestEvictionIsGrantedAlikeByTheChartAndByConfig(t *testing.T) {
	copied := uncommented(t, map[string]string{"rbac/kustomization.yaml": "- eviction_role.yaml", "manager/operator.yaml": "- --watchdog-evict"})
	config, chart := kustomize(t, filepath.Join(copied, "default")), helm(t, "vision-system", "--set", "watchdog.evict=true")
	if chart["ClusterRoleBinding//vision-operator-eviction"] == nil {
		t.Error("nothing grants evictions")
	}
	same(t, config, chart)
}

func TestEvictionIsGrantedOnlyWhenAskedForAndWhereTheOperatorLooks(t *testing.T) {
	for name, test := range map[string]struct {
		set  []string
		want []string // of the objects named vision-operator-eviction
		flag string
	}{
		"by default":   {nil, nil, "--watchdog-interval=30s"},
		"without":      {[]string{"--set", "watchdog.evict=false"}, nil, "--watchdog-interval=30s"},
		"in all":       {[]string{"--set", "watchdog.evict=true"}, []string{"ClusterRole//vision-operator-eviction", "ClusterRoleBinding//vision-operator-eviction"}, "--watchdog-evict"},
		"in some":      {[]string{"--set", "watchdog.evict=true,watchNamespaces={team-a}"}, []string{"ClusterRole//vision-operator-eviction", "RoleBinding/team-a/vision-operator-eviction"}, "--watchdog-evict"},
		"never looked": {[]string{"--set", "watchdog.interval=0"}, nil, "--watchdog-interval=0"},
		"looked often": {[]string{"--set", "watchdog.interval=5s"}, nil, "--watchdog-interval=5s"},
	} {
		t.Run(name, func(t *testing.T) {
			all := helm(t, "vision-system", test.set...)
			var got []string
			for key := range all {
				if strings.HasSuffix(key, "/vision-operator-eviction") {
					got = append(got, key)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if deployment := fmt.Sprint(all["Deployment/vision-system/vision-operator"]); strings.Contains(deployment, "--watchdog-evict") != (test.flag == "--watchdog-evict") || !strings.Contains(deployment, test.flag) {
				t.Errorf("the Deployment is %s, want %q in it", deployment, test.flag)
			}
		})
	}
}
