// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func viewedOf(t *testing.T, data string) injection.ViewedUpdate {
	t.Helper()
	u, err := injection.ReadViewed([]byte(data))
	if err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return u
}

func merged(t *testing.T, v injection.Viewed, u injection.ViewedUpdate) injection.Viewed {
	t.Helper()
	m, err := v.Merge(u)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestViewedImagesAreMerged(t *testing.T) {
	a, b := injection.ViewedImage{MIMEType: "image/png", Size: 7}, injection.ViewedImage{MIMEType: "image/jpeg", Size: 9}
	older := injection.ViewedImage{Size: 1}
	for name, c := range map[string]struct {
		old    injection.Viewed
		update string
		want   injection.Viewed
	}{
		"nothing and nothing":                   {nil, `null`, injection.Viewed{}},
		"nothing and an image":                  {nil, `{"/a":{"mime_type":"image/png","size":7}}`, injection.Viewed{"/a": a}},
		"null keeps":                            {injection.Viewed{"/a": a}, `null`, injection.Viewed{"/a": a}},
		"D46 two keys merge":                    {injection.Viewed{"/a": a}, `{"/b":{"mime_type":"image/jpeg","size":9}}`, injection.Viewed{"/a": a, "/b": b}},
		"the new one wins":                      {injection.Viewed{"/a": older, "/b": b}, `{"/a":{"mime_type":"image/png","size":7}}`, injection.Viewed{"/a": a, "/b": b}},
		"D47 an accidental {} keeps":            {injection.Viewed{"/a": a}, `{}`, injection.Viewed{"/a": a}},
		"D47 an explicit clear empties":         {injection.Viewed{"/a": a}, `{"$clear":true}`, injection.Viewed{}},
		"a clear comes before what is beside":   {injection.Viewed{"/a": a}, ` {"/b":{"mime_type":"image/jpeg","size":9},"$clear":true}`, injection.Viewed{"/b": b}},
		"a null member is one that is not told": {nil, `{"/a":{"mime_type":"image/png","size":7,"sha256":null,"width":null}}`, injection.Viewed{"/a": a}},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(c.old)
			got := merged(t, c.old, viewedOf(t, c.update))
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v; want %v", got, c.want)
			}
			if !reflect.DeepEqual(c.old, before) {
				t.Error("the old state was changed")
			}
		})
	}
}

func TestD48WhatIsWrittenIsReadAsTheSame(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	state := injection.Viewed{"/a": {MIMEType: "image/png", Size: 7, SHA256: sum, Width: 3, Height: 4, CallID: "call_1"}, "/b": {}}
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"/a":{"mime_type":"image/png","size":7,"sha256":"` + sum + `","width":3,"height":4,"call_id":"call_1"},"/b":{}}`
	if string(data) != want {
		t.Errorf("got %s", data)
	}
	if u := viewedOf(t, string(data)); u.Clear || !reflect.DeepEqual(u.Images, state) {
		t.Errorf("got %+v", u)
	}
}

func TestD48bTwoViewsInOneStepAreBothKept(t *testing.T) {
	one, two := viewedOf(t, `{"/a":{"size":1}}`), viewedOf(t, `{"/b":{"size":2}}`)
	first := merged(t, merged(t, nil, one), two)
	second := merged(t, merged(t, nil, two), one)
	if len(first) != 2 || !reflect.DeepEqual(first, second) {
		t.Errorf("%v, %v", first, second)
	}
}

func TestDataOfOlderStatesIsReadStrictlyAndNotWritten(t *testing.T) {
	u := viewedOf(t, `{"/a":{"mime_type":"image/png","base64":"cGljdHVyZQ=="}}`)
	if raw, ok := u.Images["/a"].Data(); !ok || string(raw) != "picture" {
		t.Errorf("%q, %v", raw, ok)
	}
	if data, err := json.Marshal(merged(t, nil, u)); err != nil || strings.Contains(string(data), "cGlj") {
		t.Errorf("%s, %v", data, err)
	}
	for name, data := range map[string]string{
		"nothing": "", "no padding": "cGljdHVyZQ", "too much padding": "cGljdHVyZQ===", "bits behind the end": "cGljdHVyZR==",
		"the alphabet of URLs": "-_-_", "white space": "cGlj dHVy", "line breaks": "cGlj\\ndHVy", "a data URL without comma": "data:image/png;base64", "a data URL": "data:image/png;base64,cGlj",
	} {
		v := viewedOf(t, `{"/w/a.png":{"mime_type":"image/png","base64":"`+data+`"}}`).Images
		if raw, ok := v["/w/a.png"].Data(); ok {
			t.Errorf("%s is taken: %q", name, raw)
		}
		p := listed(t, ask, read1).Plan(injection.RulesOf(router.Injection{}), listKey, v)
		if m := appended(t, p.Decide(make([]injection.Shown, 1))); m.kinds() != "text" {
			t.Errorf("%s: %+v", name, m.Content)
		}
	}
}

func TestViewedImagesThatAreNoneAreToldWhereAndWhy(t *testing.T) {
	for data, want := range map[string]string{
		`[]`:                            "it is no object",
		`{`:                             "it is not JSON",
		``:                              "it is not JSON",
		`{"/a":null}`:                   `at "/a": it is no object`,
		`{"/a":{"size":"7"}}`:           `at "/a".size: it is no whole number`,
		`{"/a":{"size":-1}}`:            `at "/a".size: it is no whole number`,
		`{"/a":{"size":1.5}}`:           `at "/a".size: it is no whole number`,
		`{"/a":{"size":1099511627777}}`: `at "/a".size: it is no whole number`,
		`{"/a":{"width":2147483648}}`:   `at "/a".width: it is no whole number`,
		`{"/a":{"mime_type":7}}`:        `at "/a".mime_type: it is no text`,
		`{"/a":{"sha256":"00"}}`:        `at "/a".sha256: it is not 64`,
		`{"/a":{"sha256":"` + strings.Repeat("0F", 32) + `"}}`:   `at "/a".sha256: it is not 64`,
		`{"/a":{"actual_path":"/host"}}`:                         `at "/a"."actual_path": the member is not known`,
		`{"/a":{"size":1,"size":2}}`:                             `at "/a".size: it is there twice`,
		`{"/a":{},"/a":{}}`:                                      `at "/a": the path is there twice`,
		`{"$clear":false}`:                                       `at $clear: it may be true`,
		`{"$clear":true,"$clear":true}`:                          `at $clear: it may be true`,
		`{"":{}}`:                                                "a path is empty",
		`{"a\u0000":{}}`:                                         "a path is empty",
		`{"` + strings.Repeat("a", 4097) + `":{}}`:               "longer than 4096 bytes",
		`{"/a":{"call_id":"` + strings.Repeat("a", 4097) + `"}}`: `at "/a".call_id: it is longer than 4096 bytes`,
	} {
		_, err := injection.ReadViewed([]byte(data))
		if err == nil || !strings.HasPrefix(err.Error(), "reading viewed images") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v; want %s", data, err, want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.60s: an error of %d bytes", data, len(err.Error()))
		}
	}
}

func TestStatesOfViewedImagesAreBounded(t *testing.T) {
	many := func(from, n int) string {
		var entries []string
		for i := range n {
			entries = append(entries, fmt.Sprintf(`"/%d":{}`, from+i))
		}
		return "{" + strings.Join(entries, ",") + "}"
	}
	full := viewedOf(t, many(0, injection.MaxViewed))
	if _, err := injection.ReadViewed([]byte(many(0, injection.MaxViewed+1))); err == nil {
		t.Error("too many are read")
	}
	if _, err := full.Images.Merge(viewedOf(t, many(injection.MaxViewed, 1))); err == nil {
		t.Error("too many are merged")
	}
	if m := merged(t, full.Images, viewedOf(t, many(injection.MaxViewed-1, 1))); len(m) != injection.MaxViewed {
		t.Errorf("%d", len(m))
	}
}

func FuzzReadViewed(f *testing.F) {
	for _, data := range []string{
		`null`, `{}`, `{"$clear":true}`, `{"/a":{"mime_type":"image/png","size":7,"sha256":"","width":1,"height":2,"call_id":"c","base64":"YQ=="}}`,
		`{"/a":{"size":1e3}}`, `{"\ud83d\ude00":{}}`, ` { "a" : { } } `,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := injection.ReadViewed(data)
		if err != nil {
			return
		}
		v := merged(t, nil, u)
		written, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for path, image := range v {
			_, _ = image.Data()
			if image.Size < 0 || path == "" {
				t.Fatalf("%q: %+v", path, image)
			}
		}
		again, err := injection.ReadViewed(written)
		if err != nil || len(again.Images) != len(v) {
			t.Fatalf("%v of %s", err, written)
		}
	})
}
