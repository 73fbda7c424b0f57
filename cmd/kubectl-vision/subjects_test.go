// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAReferenceNamesAKindAsPeopleDo(t *testing.T) {
	for text, kind := range map[string]string{
		"agent": "Pod", "pod/agent": "Pod", "Pods/agent": "Pod", "deploy/agent": "Deployment", "deployments.apps/agent": "Deployment",
		"sts/agent": "StatefulSet", "ds/agent": "DaemonSet", "rs/agent": "ReplicaSet", "Job/agent": "Job", "cj/agent": "CronJob",
	} {
		ref, err := parseReference(text)
		got := "Pod"
		if ref.of != nil {
			got = ref.of.kind
		}
		if err != nil || got != kind || ref.name != "agent" {
			t.Errorf("%s: got %s %q (%v), want %s", text, got, ref.name, err, kind)
		}
	}
	for _, text := range []string{"", "pod/", "service/agent", "pod/a/b", "/agent"} {
		if ref, err := parseReference(text); exitCode(err) != exitUsage || err == nil {
			t.Errorf("%q: got %+v and %v, want a usage error", text, ref, err)
		}
	}
}

func TestTheOperatorsCommandLineTellsItsSettings(t *testing.T) {
	o, err := parseOperator([]string{
		"/vision-operator", "--operator-namespace=$(POD_NAMESPACE)", "--leader-elect", "--secret-access=none", "--watch-namespaces=a,b",
		"--runtime-image", "registry.example/runtime:v1", "--runtime-limits=memory=1Gi", "--runtime-image-pull-secret=one", "--webhook-listen=:9443",
	})
	if err != nil {
		t.Fatal(err)
	}
	memory := o.settings.Resources.Limits[corev1.ResourceMemory]
	if o.settings.Image != "registry.example/runtime:v1" || memory.String() != "1Gi" || strings.Join(o.settings.PullSecrets, " ") != "one" ||
		strings.Join(o.watchNamespaces, " ") != "a b" || o.secretAccess != withoutSecrets {
		t.Errorf("got %+v", o)
	}
	if _, err := parseOperator([]string{"--runtime-image=x", "--runtime-limits=memory=much"}); err == nil {
		t.Error("a limit that is no quantity was taken")
	}
}

// FuzzReadForExplain holds the reader of pods and templates against anything, and
// explains what it takes.
func FuzzReadForExplain(f *testing.F) {
	seeds, err := filepath.Glob("testdata/explain-*/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("found no seeds: %v", err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := newObjects("team", map[string]*kindSchema{})
		o.explained = &explainable{secrets: map[client.ObjectKey]*corev1.Secret{}}
		if bytes.Contains(data, []byte("visionoperator.dev/v1alpha1")) {
			return // FuzzRead's
		}
		if o.readPaths([]string{"-"}, bytes.NewReader(data)) != nil {
			return
		}
		for _, s := range o.explained.subjects {
			if s.namespace() == "" || s.name == "" {
				t.Errorf("took a pod without a namespace or a name: %+v", s.pod.ObjectMeta)
			}
		}
		err := runExplain(t.Context(), []string{"-f", "-"}, bytes.NewReader(data), io.Discard, io.Discard)
		if _, without := errors.AsType[*withoutError](err); err != nil && !without && len(o.explained.subjects) > 0 {
			t.Errorf("what was read is not explained: %v", err)
		}
	})
}
