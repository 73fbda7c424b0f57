// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/visionoperator/vision-operator/runtime/fault"
)

// Path is one mention of a local image file in a request.
type Path struct {
	// Name is the file's path, cleaned: two mentions of one file have the same.
	Name string
	// Turn and Required are those of an Image.
	Turn     int
	Required bool
	// Soft is that of an Image: the request is not refused for it.
	Soft bool
}

// Probes is which files may be opened for a request.
type Probes struct {
	// May is, for each path in the order given, whether its file may be opened.
	May []bool
	// Refusal is set when the required paths alone are too many: none is opened.
	Refusal *fault.Fault
	// Why is what stands against the images of the paths that may not be opened, as
	// their Image.Bad.
	Why *fault.Fault
}

// ProbePaths chooses the files that may be opened for a request before any of
// them is: those of at most most different names (limits.request.maxProbedPaths),
// required ones first, then the newest. A name that is required anywhere counts
// as required. It follows the conversation as Review does: a mention that was
// left out stays left out.
func ProbePaths(turns []Turn, paths []Path, most int64) Probes {
	in := Input{Turns: turns, Images: make([]Image, len(paths))}
	for i, p := range paths {
		in.Images[i] = Image{SHA256: p.Name, Turn: p.Turn, Required: p.Required, Soft: p.Soft}
	}
	t := &terms{sees: true}
	t.contents = []bound{{max: most, limit: "limits.request.maxProbedPaths", owner: thePolicy}}
	t.rules = requestRules(&t.bounds, len(paths) == 1)
	t.rules[0].say = tooManyPaths
	l := newLedger(&in, t)
	out := Probes{Refusal: l.replay(), May: make([]bool, len(paths))}
	if out.Refusal != nil {
		return out
	}
	for i := range l.entries {
		if out.May[i] = l.entries[i].kept; !out.May[i] {
			out.Why = l.entries[i].shed
		}
	}
	return out
}

func tooManyPaths(r *rule, n int64, alone bool) *fault.Fault {
	return fault.New(fault.BudgetExceeded, ReasonPaths, "the request names %d different %simage files; %s %d", n, r.required(alone), r.named(), r.max).
		With("path_count", n).With("max_path_count", r.max).With("limit", r.limit).With("limit_of", r.owner).
		Hint("Name fewer image files at once.")
}
