// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package random

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// dice make all choices of one pod; the same number gives the same pod.
type dice struct{ *rand.Rand }

func newDice(seed, number uint64) dice { return dice{rand.New(rand.NewPCG(seed, number))} }

// often is true so many times in a hundred.
func (d dice) often(percent int) bool { return d.IntN(100) < percent }

// either is true every other time.
func (d dice) either() bool { return d.often(50) }

// flag is unset, true or false.
func (d dice) flag() *bool {
	if d.either() {
		return nil
	}
	return new(d.either())
}

// one of some.
func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// some of them, in their order; perhaps none.
func some[T any](d dice, percent int, of ...T) []T {
	var out []T
	for _, item := range of {
		if d.often(percent) {
			out = append(out, item)
		}
	}
	return out
}

// number from low to high.
func (d dice) number(low, high int) int { return low + d.IntN(high-low+1) }

// name is a DNS label with a number that makes it another in each place.
func (d dice) name(place int) string {
	return fmt.Sprintf("%s-%d", one(d, "agent", "worker", "mesh", "x", "a.b"[:1], "log-shipper", "vision-runtime"), place)
}

// quantity of a resource, of a size that fits it.
func (d dice) quantity(of corev1.ResourceName) resource.Quantity {
	switch of {
	case corev1.ResourceCPU:
		return resource.MustParse(one(d, "100m", "250m", "500m", "1", "0.3", "150m"))
	case corev1.ResourceMemory:
		return resource.MustParse(one(d, "64Mi", "128Mi", "256Mi", "100M", "134217728", "200Mi"))
	case corev1.ResourceEphemeralStorage:
		return resource.MustParse(one(d, "1Gi", "500Mi", "2G"))
	case "hugepages-2Mi":
		return resource.MustParse(one(d, "2Mi", "4Mi"))
	default:
		return resource.MustParse(one(d, "1", "2"))
	}
}
