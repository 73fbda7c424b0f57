// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/store"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.FixedZone("east", 3600))

// open opens a keeper whose clock goes a minute at each look at it.
func open(t testing.TB, o reference.Options) *reference.Keeper {
	t.Helper()
	var mu sync.Mutex
	now := start
	o.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		defer func() { now = now.Add(time.Minute) }()
		return now
	}
	k, err := reference.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// image is a reference to data at a path.
func image(path, data string) *observation.Reference {
	sum := sha256.Sum256([]byte(data))
	return observation.NewReference(path, hex.EncodeToString(sum[:]), "image/png", int64(len(data)), 3, 2)
}

// twin is a reference to another image with the same id.
func twin(of *observation.Reference, path string) *observation.Reference {
	c := *of
	c.SHA256, c.Path = of.SHA256[:16]+strings.Repeat("0", 48), path
	return &c
}

func upload(t testing.TB, k *reference.Keeper, data string) *reference.Kept {
	t.Helper()
	kept, bad := k.Upload(image("upload", data), []byte(data))
	if bad != nil {
		t.Fatal(bad)
	}
	return kept
}

// pathOf is where an id leads, or "" when it is not found.
func pathOf(k *reference.Keeper, id string) string {
	if kept, ok := k.Find(id); ok {
		return kept.Reference.Path
	}
	return ""
}

func reasonOf(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return string(f.Kind) + " " + f.Reason
	}
	return ""
}

const unknown = "invalid_tool_input ReferenceUnknown"

func TestWhatWasLookedAtIsFoundAlsoAfterARestart(t *testing.T) {
	dir := t.TempDir()
	ref := image("/workspace/a.png", "a")
	k := open(t, reference.Options{Dir: dir})
	k.Remember(ref)
	want := &reference.Kept{
		Reference: image("/workspace/a.png", "a"), URI: "vision://" + ref.ID,
		CreatedAt: time.Date(2026, 11, 30, 11, 0, 0, 0, time.UTC),
	}
	ref.Path = "changed by its owner"
	for name, k := range map[string]*reference.Keeper{
		"the same keeper": k, "another": open(t, reference.Options{Dir: dir}),
	} {
		got, ok := k.Find(ref.ID)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, err := k.Bytes(got); reasonOf(err) != "image_read_failed NotUploaded" {
			t.Errorf("%s gives its bytes: %v", name, err)
		}
		got.Reference.Size.Width = 99
		if again, _ := k.Find(ref.ID); again.Reference.Size.Width != 3 {
			t.Errorf("%s: a caller's change came through", name)
		}
	}
	data, err := json.Marshal(want)
	if want := `"uri":"vision://` + ref.ID + `","uploaded":false,"created_at":"2026-11-30T11:00:00Z"}`; err != nil || !strings.HasSuffix(string(data), want) {
		t.Errorf("as JSON it is %s", data)
	}
}

func TestTheNewestPathOfAnImageCounts(t *testing.T) {
	dir := t.TempDir()
	k := open(t, reference.Options{Dir: dir})
	k.Remember(image("/workspace/a.png", "a"))
	k.Remember(image("/workspace/b.png", "a"))
	for _, k := range []*reference.Keeper{k, open(t, reference.Options{Dir: dir})} {
		kept, ok := k.Find(image("", "a").ID)
		if !ok || kept.Reference.Path != "/workspace/b.png" || kept.CreatedAt.Minute() != 0 {
			t.Errorf("found %+v", kept)
		}
	}
}

func TestWhatIsKnownIsNotWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	ref := image("/workspace/a.png", "a")
	k := open(t, reference.Options{Dir: dir})
	k.Remember(ref)
	file := filepath.Join(dir, "references", ref.ID)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	k.Remember(ref)
	if _, err := os.Stat(file); err == nil {
		t.Error("the same reference was written twice")
	}
	k.Remember(image("/workspace/b.png", "a"))
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a new path was not written: %v", err)
	}
}

func TestAnUploadKeepsItsBytesAlsoAfterARestart(t *testing.T) {
	dir := t.TempDir()
	k := open(t, reference.Options{Dir: dir})
	kept := upload(t, k, "a")
	if kept.URI != "vision://"+kept.Reference.ID || kept.Reference.Path != kept.URI || !kept.Uploaded || kept.Existed {
		t.Errorf("kept as %+v", kept)
	}
	again := upload(t, k, "a")
	if !again.Existed || again.URI != kept.URI || !again.CreatedAt.Equal(kept.CreatedAt) {
		t.Errorf("the same bytes are kept as %+v", again)
	}
	k.Remember(image(kept.URI, "a"))           // looked at as an upload
	k.Remember(image("/workspace/a.png", "a")) // and as a file
	for _, k := range []*reference.Keeper{k, open(t, reference.Options{Dir: dir})} {
		found, ok := k.Find(kept.Reference.ID)
		if diff := cmp.Diff(kept, found); !ok || diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		if data, err := k.Bytes(found); err != nil || string(data) != "a" {
			t.Errorf("its bytes are %q, %v", data, err)
		}
	}
}

func TestAnImageThatWasLookedAtMayBeUploaded(t *testing.T) {
	k := open(t, reference.Options{Dir: t.TempDir()})
	k.Remember(image("/workspace/a.png", "a"))
	kept := upload(t, k, "a")
	if kept.Existed || !kept.Uploaded || kept.Reference.Path != kept.URI || kept.CreatedAt.Minute() != 0 {
		t.Errorf("kept as %+v", kept)
	}
}

func TestAnIDOfTwoImagesNamesNeither(t *testing.T) {
	a := image("/workspace/a.png", "a")
	for name, first := range map[string]func(*testing.T, *reference.Keeper){
		"looked at": func(_ *testing.T, k *reference.Keeper) { k.Remember(a) },
		"uploaded":  func(t *testing.T, k *reference.Keeper) { upload(t, k, "a") },
	} {
		t.Run("after one was "+name, func(t *testing.T) {
			dir := t.TempDir()
			k := open(t, reference.Options{Dir: dir})
			first(t, k)
			before := pathOf(k, a.ID)
			_, bad := k.Upload(twin(a, "upload"), []byte("b"))
			if reasonOf(bad) != "invalid_tool_input ReferenceConflict" || pathOf(k, a.ID) != before || before == "" {
				t.Errorf("uploading the other: %v; the id leads to %q", bad, pathOf(k, a.ID))
			}
			k.Remember(twin(a, "/workspace/b.png")) // it could be looked at, and its id was answered
			k.Remember(a)
			for _, k := range []*reference.Keeper{k, open(t, reference.Options{Dir: dir})} {
				k.Remember(a)
				_, bad = k.Upload(a, []byte("a"))
				if pathOf(k, a.ID) != "" || reasonOf(bad) != "invalid_tool_input ReferenceConflict" {
					t.Errorf("the id leads to %q; uploading gives %v", pathOf(k, a.ID), bad)
				}
			}
			if left, err := os.ReadDir(filepath.Join(dir, "uploads")); err != nil || len(left) != 0 {
				t.Errorf("uploads left: %v, %v", left, err)
			}
		})
	}
}

func TestWhatIsNoReferenceIsNotKept(t *testing.T) {
	k := open(t, reference.Options{Dir: t.TempDir()})
	otherID, shortSHA, noPath, gone := image("/a", "a"), image("/b", "b"), image("", "c"), image("vision://x", "d")
	otherID.ID = "vis_0123456789abcdef"
	shortSHA.SHA256 = shortSHA.SHA256[:63]
	for _, ref := range []*observation.Reference{nil, otherID, shortSHA, noPath, gone} {
		k.Remember(ref)
		if ref != nil && pathOf(k, ref.ID) != "" {
			t.Errorf("kept %+v", ref)
		}
	}
	for _, ref := range []*observation.Reference{nil, otherID, image("/a", "longer than that")} {
		if _, bad := k.Upload(ref, []byte("a")); bad == nil || bad.Reason != "Internal" {
			t.Errorf("uploaded %+v: %v", ref, bad)
		}
	}
	if reasonOf(reference.Unknown("vis_0")) != "invalid_tool_input ReferenceMalformed" ||
		reasonOf(reference.Unknown(otherID.ID)) != unknown {
		t.Error("an id that is none and one that is unknown are told alike")
	}
}

func TestTheLeastRecentlyUsedReferenceGoesFirst(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "on disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			o := reference.Options{Dir: dir, MaxReferenceBytes: 3*store.Size(400) + 1}
			k := open(t, o)
			var ids []string
			for _, data := range []string{"a", "b", "c"} {
				ref := image("/workspace/"+data, data)
				ids = append(ids, ref.ID)
				k.Remember(ref)
			}
			k.Find(ids[0])
			k.Remember(image("/workspace/b", "b"))
			k.Remember(image("/workspace/d", "d"))
			keepers := []*reference.Keeper{k}
			if dir != "" {
				keepers = append(keepers, open(t, o))
			}
			for _, k := range keepers {
				if pathOf(k, ids[0]) == "" || pathOf(k, ids[1]) == "" || pathOf(k, ids[2]) != "" {
					t.Errorf("a %q, b %q, c %q", pathOf(k, ids[0]), pathOf(k, ids[1]), pathOf(k, ids[2]))
				}
			}
		})
	}
}

func TestTheOldestUploadGoesFirstAndIsNotFoundAnyMore(t *testing.T) {
	dir := t.TempDir()
	o := reference.Options{Dir: dir, MaxUploadBytes: 2 * store.Size(1)}
	k := open(t, o)
	a, b := upload(t, k, "a"), upload(t, k, "b")
	if _, err := k.Bytes(a); err != nil {
		t.Fatal(err)
	}
	upload(t, k, "c")
	if pathOf(k, a.Reference.ID) == "" || pathOf(k, b.Reference.ID) != "" {
		t.Error("want a, which was used, and not b")
	}
	if _, err := k.Bytes(b); reasonOf(err) != unknown {
		t.Errorf("the bytes of b: %v", err)
	}
	if pathOf(open(t, o), b.Reference.ID) != "" {
		t.Error("b came back after a restart")
	}
	if again := upload(t, k, "b"); again.Existed || pathOf(k, b.Reference.ID) != b.URI {
		t.Errorf("uploaded again, b is %+v", again)
	}
	large := strings.Repeat("x", 2*int(store.Size(1)))
	_, bad := k.Upload(image("upload", large), []byte(large))
	if reasonOf(bad) != "budget_exceeded TooManyBytes" || bad.Status() != 413 || pathOf(k, b.Reference.ID) == "" {
		t.Errorf("an image over the bound: %v", bad)
	}
}

func TestAnEvictedReferenceTakesItsBytesAlong(t *testing.T) {
	dir := t.TempDir()
	k := open(t, reference.Options{Dir: dir, MaxReferenceBytes: 2*store.Size(400) + 1})
	upload(t, k, "a")
	for _, data := range []string{"b", "c"} {
		k.Remember(image("/workspace/"+data, data))
	}
	if left, err := os.ReadDir(filepath.Join(dir, "uploads")); err != nil || len(left) != 0 {
		t.Errorf("uploads left: %v, %v", left, err)
	}
}

func TestManyAtOnceAgree(t *testing.T) {
	dir := t.TempDir()
	o := reference.Options{Dir: dir, MaxReferenceBytes: 8 * store.Size(400), MaxUploadBytes: 4 * store.Size(10)}
	k := open(t, o)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 40 {
				data := fmt.Sprint("image ", (worker+i)%12)
				ref := image("/workspace/"+data, data)
				if (worker+i)%2 == 0 {
					k.Remember(ref)
				} else if _, bad := k.Upload(ref, []byte(data)); bad != nil {
					t.Error(bad)
				}
				kept, ok := k.Find(ref.ID)
				if !ok || !kept.Uploaded {
					continue
				}
				if got, err := k.Bytes(kept); err != nil && reasonOf(err) != unknown || err == nil && !bytes.Equal(got, []byte(data)) {
					t.Errorf("%s is %q, %v", data, got, err)
				}
			}
		})
	}
	wg.Wait()
	after := open(t, o)
	for i := range 12 {
		id := image("", fmt.Sprint("image ", i)).ID
		if pathOf(k, id) != pathOf(after, id) {
			t.Errorf("image %d leads to %q, and after a restart to %q", i, pathOf(k, id), pathOf(after, id))
		}
	}
}
