// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
)

// releaseOf says which commit the images are of, and when it was made. SOURCE_DATE_EPOCH,
// in seconds, goes before the commit's time (https://reproducible-builds.org/specs/source-date-epoch/).
// Outside of a git repository the commit is "unknown", and without SOURCE_DATE_EPOCH the time is 1970.
func releaseOf(ctx context.Context, root, version string, say func(string, ...any)) (recipe.Release, error) {
	release := recipe.Release{Version: version, Revision: "unknown", Created: time.Unix(0, 0).UTC()}
	out, err := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%H %ct").Output()
	seconds := ""
	if err == nil {
		release.Revision, seconds, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	} else {
		say("git does not say which commit this is (%v): the images' labels will not either", err)
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	if seconds == "" {
		return release, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return release, fmt.Errorf("reading the time of the source: %w", err)
	}
	release.Created = time.Unix(n, 0).UTC()
	return release, nil
}
