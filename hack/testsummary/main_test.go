// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	cases := []struct {
		name   string
		events []string
		want   []string // each is in the report
		absent []string // none is
		fails  bool
	}{
		{
			name: "passing tests are counted, their output is not shown",
			events: []string{
				`{"Action":"start","Package":"p"}`,
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Elapsed":1.25}`,
			},
			want:   []string{"ok    p  1.2s\n", "\n2 passed, 0 failed\n"},
			absent: []string{"noise"},
		},
		{
			name: "a failing test shows what it said and fails the run",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: why\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
				`{"Action":"fail","Package":"p","Elapsed":0.1}`,
			},
			want:  []string{"a_test.go:1: why\n", "FAIL  p", "\n1 passed, 1 failed\n"},
			fails: true,
		},
		{
			name: "a build that fails shows the compiler's words",
			events: []string{
				`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:3:1: undefined: x\n"}`,
				`{"ImportPath":"p [p.test]","Action":"build-fail"}`,
				`{"Action":"pass","Package":"q","Test":"TestQ"}`,
				`{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}`,
			},
			want:  []string{"undefined: x", "failed outside of its tests: p", "\n1 passed, 1 failed\n"},
			fails: true,
		},
		{
			name: "a process that dies inside a test shows that test's output",
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want:  []string{"panic: boom", "failed outside of its tests: p", "0 passed, 1 failed\n"},
			fails: true,
		},
		{
			name: "a skipped test is named",
			events: []string{
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
			},
			want: []string{"skipped: p TestA\n", "1 passed, 0 failed, 1 skipped\n"},
		},
		{
			name:   "a run of no test fails",
			events: []string{`{"Action":"skip","Package":"p"}`},
			want:   []string{"0 passed, 0 failed\n"},
			fails:  true,
		},
		{
			name:   "a line that is no event is passed on",
			events: []string{`go: no such package`, `{"Action":"pass","Package":"p","Test":"TestA"}`},
			want:   []string{"go: no such package\n"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := report(strings.NewReader(strings.Join(c.events, "\n")), &out)
			if (err != nil) != c.fails {
				t.Errorf("got error %v, want one: %t", err, c.fails)
			}
			for _, text := range c.want {
				if !strings.Contains("\n"+out.String(), text) {
					t.Errorf("the report lacks %q:\n%s", text, out.String())
				}
			}
			for _, text := range c.absent {
				if strings.Contains(out.String(), text) {
					t.Errorf("the report shows %q:\n%s", text, out.String())
				}
			}
		})
	}
}
