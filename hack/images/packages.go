// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/visionoperator/vision-operator/hack/images/internal/debian"
	"github.com/visionoperator/vision-operator/hack/images/internal/linkage"
	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
	"github.com/visionoperator/vision-operator/hack/images/internal/sbom"
)

// lockFile says which of Debian's packages images are made of.
const lockFile = "hack/images/debian.lock.json"

// packages gets Debian's packages for images.
type packages struct {
	store   debian.Store
	lock    string // path of the lock
	current bool   // today's versions, whatever the lock says
}

func newPackages(lock string, current bool, say func(string, ...any)) (*packages, error) {
	dir, err := cacheDir()
	if err != nil {
		return nil, err
	}
	return &packages{store: debian.Store{Dir: dir, Say: say}, lock: lock, current: current}, nil
}

// NotLockedError is an architecture that the lock does not know.
type NotLockedError struct{ Architecture string }

func (e *NotLockedError) Error() string {
	return fmt.Sprintf("reading the lock: it names no packages for %s", e.Architecture)
}

// choose returns the files that an image takes from Debian's packages, and those packages.
func (p *packages) choose(ctx context.Context, want recipe.Debian, arch string) (*rootfs.Tree, []sbom.Debian, error) {
	files, used, err := p.take(ctx, want, arch)
	if err != nil {
		return nil, nil, err
	}
	described := make([]sbom.Debian, len(used))
	for i, u := range used {
		described[i] = sbom.Debian{
			Name: u.Name, Version: u.Version, Architecture: u.Architecture, Source: u.Source, SHA256: u.SHA256, Suite: recipe.Suite,
		}
	}
	return files, described, nil
}

func (p *packages) take(ctx context.Context, want recipe.Debian, arch string) (*rootfs.Tree, []debian.Package, error) {
	if p.current {
		return p.newest(ctx, want, arch)
	}
	lock, err := debian.ReadLock(p.lock)
	if err != nil {
		return nil, nil, err
	}
	if len(lock.Packages[arch]) == 0 {
		return nil, nil, &NotLockedError{Architecture: arch}
	}
	unpacked, err := p.store.Unpack(ctx, lock.Suite, lock.Snapshot, arch, lock.Packages[arch])
	if err != nil {
		return nil, nil, err
	}
	return debian.Choose(unpacked, want, linkage.Platforms[arch])
}

// newest chooses from all that the packages asked for depend on, as Debian has it today.
func (p *packages) newest(ctx context.Context, want recipe.Debian, arch string) (*rootfs.Tree, []debian.Package, error) {
	all, err := p.store.Resolve(ctx, recipe.Suite, arch, want.Packages)
	if err != nil {
		return nil, nil, err
	}
	unpacked, err := p.store.Unpack(ctx, recipe.Suite, "", arch, all)
	if err != nil {
		return nil, nil, err
	}
	return debian.Choose(unpacked, want, linkage.Platforms[arch])
}

// lock writes the lock anew: the packages that give a file to an image, for all architectures asked for.
func (b *builder) lock(ctx context.Context) error {
	lock := debian.Lock{
		Suite: recipe.Suite, Snapshot: time.Now().UTC().Format(debian.SnapshotForm), Packages: map[string][]debian.Package{},
	}
	for _, r := range b.recipes {
		if r.Debian == nil {
			continue
		}
		for _, arch := range b.architectures {
			_, used, err := b.packages.newest(ctx, *r.Debian, arch)
			if err != nil {
				return fmt.Errorf("locking Debian's packages for %s: %w", arch, err)
			}
			lock.Packages[arch] = used
			b.say("%s for %s is made of %d packages", r.Name, arch, len(used))
		}
	}
	data, err := lock.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.root, lockFile), data, 0o644); err != nil {
		return fmt.Errorf("writing the lock: %w", err)
	}
	return nil
}
