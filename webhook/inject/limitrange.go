// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fit changes what the container asks for until the namespace's LimitRanges let it
// pass, as far as one value can: by the rules of the API server's LimitRanger, a
// resource with a minimum or a maximum must be asked for and be limited, and both
// must lie between; a limit is at most so many times its request. What is
// equal stays equal, as in a Guaranteed pod.
func (d *decision) fit(want *corev1.ResourceRequirements) {
	for i := range d.LimitRanges {
		for j := range d.LimitRanges[i].Spec.Limits {
			item := d.ofContainers(&d.LimitRanges[i].Spec.Limits[j])
			for _, name := range constrained(&item) {
				d.fitOne(want, d.LimitRanges[i].Name, &item, name)
			}
		}
	}
}

// ofContainers is what an item asks of each container. Of one for pods that is the
// ratio: where every container keeps it, the pod does, unless it has resources as a
// whole, of which it is asked then. Sums are the author's to mind.
func (d *decision) ofContainers(item *corev1.LimitRangeItem) corev1.LimitRangeItem {
	switch item.Type {
	case corev1.LimitTypeContainer:
		return *item
	case corev1.LimitTypePod:
		if _, whole := asWhole(d.Pod); !whole {
			return corev1.LimitRangeItem{MaxLimitRequestRatio: item.MaxLimitRequestRatio}
		}
	}
	return corev1.LimitRangeItem{}
}

// boundsContainers reports whether a LimitRange says anything of containers.
func boundsContainers(r corev1.LimitRange) bool {
	return slices.ContainsFunc(r.Spec.Limits, func(item corev1.LimitRangeItem) bool { return item.Type == corev1.LimitTypeContainer })
}

// constrained are the resources that an item says something of, in order.
func constrained(item *corev1.LimitRangeItem) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, list := range []corev1.ResourceList{item.Min, item.Max, item.MaxLimitRequestRatio} {
		for name := range list {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (d *decision) fitOne(want *corev1.ResourceRequirements, by string, item *corev1.LimitRangeItem, name corev1.ResourceName) {
	request, requested := want.Requests[name]
	limit, limited := want.Limits[name]
	asked, allowed := request.DeepCopy(), limit.DeepCopy()
	if least, ok := item.Min[name]; ok {
		asked = larger(asked, least)
		if limited {
			allowed = larger(allowed, least)
		}
		requested = true
	}
	if most, ok := item.Max[name]; ok {
		if !limited || allowed.Cmp(most) > 0 {
			allowed = most.DeepCopy()
		}
		limited = true
	}
	if ratio, ok := item.MaxLimitRequestRatio[name]; ok {
		if !limited {
			allowed = asked.DeepCopy()
		}
		asked = larger(asked, quotient(allowed, ratio))
		requested, limited = true, true
	}
	if limited && asked.Cmp(allowed) > 0 {
		asked = allowed.DeepCopy()
	}
	if !requested && !limited || requested && limited && asked.Cmp(request) == 0 && allowed.Cmp(limit) == 0 {
		return
	}
	if requested {
		set(&want.Requests, name, asked)
	}
	if limited {
		set(&want.Limits, name, allowed)
	}
	if asked.Cmp(request) != 0 || allowed.Cmp(limit) != 0 {
		d.tell(ReasonResourcesFitted, "LimitRange %s: the runtime requests %s of %s (%s), at most %s (%s)",
			by, shown(asked, requested), name, shown(request, true), shown(allowed, limited), shown(limit, true))
	}
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b.DeepCopy()
	}
	return a
}

// quotient is the least quantity of which a limit is at most ratio times as much.
func quotient(limit, ratio resource.Quantity) resource.Quantity {
	if ratio.Sign() <= 0 {
		return limit.DeepCopy()
	}
	// The API server compares the values, or the thousandths where both are small.
	thousandths := limit.AsApproximateFloat64() / ratio.AsApproximateFloat64() * 1000
	whole := int64(thousandths)
	if float64(whole) < thousandths {
		whole++
	}
	return *resource.NewMilliQuantity(whole, limit.Format)
}

func shown(q resource.Quantity, there bool) string {
	if !there {
		return "nothing"
	}
	return q.String()
}
