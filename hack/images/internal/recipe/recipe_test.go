// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recipe_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
)

func TestImagesAreChosenByName(t *testing.T) {
	got, err := recipe.Choose([]string{"vision-ocr", "vision-operator"})
	if err != nil || len(got) != 2 || got[0].Name != "vision-operator" || got[1].Name != "vision-ocr" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = recipe.Choose(nil); err != nil || len(got) != len(recipe.All) {
		t.Errorf("no name: %+v, %v", got, err)
	}
	_, err = recipe.Choose([]string{"vision-runtime", "vision-runtim"})
	if unknown, ok := errors.AsType[*recipe.UnknownError](err); !ok || unknown.Name != "vision-runtim" {
		t.Errorf("a name with a typo: %v", err)
	}
}

func TestAVersionMustBeATag(t *testing.T) {
	for version, ok := range map[string]bool{
		"v1.2.3": true, "v1.2.3-4-gabcdef0-dirty": true, "unknown": true, "_x": true, strings.Repeat("a", 128): true,
		"": false, "-x": false, ".x": false, "v1+2": false, "a/b": false, "a:b": false, "a b": false, strings.Repeat("a", 129): false,
	} {
		if err := recipe.CheckVersion(version); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestTheRuntimesImageIsSmall(t *testing.T) {
	got, err := recipe.Choose([]string{"vision-runtime"})
	if err != nil || got[0].MaxBytes != 15*1024*1024 {
		t.Errorf("%+v, %v: every agent's node pulls it, and it may have 15 MiB", got, err)
	}
}

// stage returns the lines of one stage of the Dockerfile.
func stage(t *testing.T, dockerfile, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(dockerfile, "\nFROM scratch AS "+name+"\n")
	if !ok {
		t.Fatalf("the Dockerfile has no target %s on scratch", name)
	}
	rest, _, _ = strings.Cut(rest, "\nFROM ")
	return rest + "\n"
}

var label = regexp.MustCompile(`(?m)^LABEL (\S+)="(.*)"$`)

func TestTheDockerfileMakesTheSameImages(t *testing.T) {
	data, err := os.ReadFile("../../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipe.All {
		t.Run(r.Name, func(t *testing.T) {
			text := stage(t, string(data), r.Name)
			for _, line := range []string{
				"USER " + recipe.User, `ENTRYPOINT ["` + r.Program + `"]`, "ENV PATH=" + recipe.SearchPath, "WORKDIR /",
				"COPY --from=" + r.Name + "-files /out/" + r.Name + "/ /",
			} {
				if strings.Count(text, line+"\n") != 1 {
					t.Errorf("%q is not in it once:\n%s", line, text)
				}
			}
			// The files come from this module, which checks them.
			if want := `go run -buildvcs=false . rootfs -images ` + r.Name + ` -arch "$TARGETARCH" -version "$VERSION" -out /out`; !strings.Contains(string(data), want+"\n") {
				t.Errorf("no stage runs %q", want)
			}
			want := r.Labels(recipe.Release{Version: "$VERSION", Revision: "$REVISION"})
			want["org.opencontainers.image.created"] = "$CREATED"
			got := label.FindAllStringSubmatch(text, -1)
			if len(got) != len(want) {
				t.Errorf("it has %d labels, want %d", len(got), len(want))
			}
			for _, l := range got {
				if want[l[1]] != l[2] {
					t.Errorf("label %s is %q, want %q", l[1], l[2], want[l[1]])
				}
			}
			for _, command := range []string{"RUN ", "CMD ", "SHELL ", "ADD ", "VOLUME "} {
				if strings.Contains("\n"+text, "\n"+command) {
					t.Errorf("it has %s, and make images has nothing of the kind", command)
				}
			}
		})
	}
}

func TestLabelsSayWhereAnImageIsFrom(t *testing.T) {
	at := time.Date(2026, 12, 1, 2, 3, 4, 0, time.FixedZone("", 3600))
	got := recipe.All[1].Labels(recipe.Release{Version: "v1", Revision: "abc", Created: at})
	for key, want := range map[string]string{
		"title": "Vision Operator runtime", "version": "v1", "revision": "abc", "licenses": "Apache-2.0", "created": "2026-12-01T01:03:04Z",
		"source": "https://github.com/visionoperator/vision-operator",
	} {
		if got["org.opencontainers.image."+key] != want {
			t.Errorf("%s is %q, want %q", key, got["org.opencontainers.image."+key], want)
		}
	}
}
