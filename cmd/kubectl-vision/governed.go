// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// governed is what holds for a request.
type governed struct {
	grant review.Grant
	// policy is "namespace/name"; empty where there is none and the defaults hold.
	policy string
	// defaultRoute is the model of a request that names none; empty when there is none.
	defaultRoute string
	// remarks are what to know of the objects, a line each.
	remarks []string
}

// grants gives the one grant that there is.
func (g *governed) grants(string) (review.Grant, error) { return g.grant, nil }

// govern reads the objects and compiles what holds for the request.
func govern(o *preflightOptions, stdin io.Reader) (*governed, error) {
	var schemas map[string]*kindSchema
	if len(o.objects) > 0 || o.policyFile != "" { // without objects there is nothing to check
		var err error
		if schemas, err = loadSchemas(); err != nil {
			return nil, err
		}
	}
	objects, err := readObjects(o.objects, o.namespace, stdin, schemas)
	if err != nil {
		return nil, err
	}
	name := o.policy
	if o.policyFile != "" {
		name, err = objects.readPolicy(o.policyFile, stdin)
	}
	if err != nil {
		return nil, err
	}
	if err := objects.checkNamespace(objects.input(o.operatorNamespace)); err != nil {
		return nil, err
	}
	policy, err := objects.choose(name)
	if err != nil {
		return nil, err
	}
	return objects.compiled(policy, o)
}

// policyNames are the namespace's policies by name, those that the API server
// would refuse among them.
func (o *objects) policyNames() []string {
	var names []string
	for key := range o.seen {
		if name, ok := strings.CutPrefix(key, "VisionPolicy "+o.defaultNamespace+"/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// readPolicy reads a file and returns the name of the one policy in it.
func (o *objects) readPolicy(path string, stdin io.Reader) (string, error) {
	before := o.policyNames()
	var err error
	if path == "-" {
		err = o.read("standard input", stdin)
	} else {
		err = o.readFile(path)
	}
	if err != nil {
		return "", err
	}
	names := slices.DeleteFunc(o.policyNames(), func(name string) bool { return slices.Contains(before, name) })
	if len(names) != 1 {
		return "", fmt.Errorf("reading %s: --policy-file wants 1 VisionPolicy of namespace %q; the file holds %d", named(path), o.defaultNamespace, len(names))
	}
	return names[0], nil
}

// choose is the policy of that name or, for "", the namespace's only one; nil
// when it has none.
func (o *objects) choose(name string) (*v1alpha1.VisionPolicy, error) {
	names := o.policyNames()
	switch {
	case name == "" && len(names) == 0:
		return nil, nil
	case name == "" && len(names) > 1:
		return nil, &usageError{problem: fmt.Sprintf("--policy is missing; namespace %q has %d policies: %s", o.defaultNamespace, len(names), strings.Join(names, ", "))}
	case name == "":
		name = names[0]
	case !slices.Contains(names, name):
		return nil, &usageError{problem: fmt.Sprintf("--policy is %q; the policies of namespace %q are: %s", name, o.defaultNamespace, strings.Join(names, ", "))}
	}
	for i := range o.policies {
		if p := &o.policies[i]; p.Namespace == o.defaultNamespace && p.Name == name {
			return p, nil
		}
	}
	err := &policyError{policy: o.defaultNamespace + "/" + name}
	for _, r := range o.refused {
		if r.object == "VisionPolicy "+err.policy {
			err.problems = r.problems
		}
	}
	return nil, err
}

// policyError is a policy that does not govern anything.
type policyError struct {
	policy   string
	problems []string
}

// Error names the policy and every problem.
func (e *policyError) Error() string {
	return fmt.Sprintf("compiling VisionPolicy %s: %s", e.policy, strings.Join(e.problems, "; "))
}

// noPolicy is the name of the empty policy that stands in where there is none.
const noPolicy = "defaults"

// compiled compiles the namespace, and gives what it grants to the policy; where
// that is nil, to the baseline that serves pods without labels, or to an empty
// policy.
func (o *objects) compiled(policy *v1alpha1.VisionPolicy, opt *preflightOptions) (*governed, error) {
	in := o.input(opt.operatorNamespace)
	out, told := &governed{}, in
	told.Policies = nil
	baseline, serving := compile.Serving(compile.Servers(in), nil, "")
	var id string
	switch {
	case policy != nil:
		id, out.policy = compile.ProfileID(policy.Name), policy.Namespace+"/"+policy.Name
		told.Policies = []v1alpha1.VisionPolicy{*policy}
	case serving.Reason == compile.ServingBaseline:
		id, out.policy = baseline, opt.operatorNamespace+"/"+strings.TrimPrefix(baseline, compile.BaselineProfileID(""))
	default:
		empty := v1alpha1.VisionPolicy{}
		empty.Namespace, empty.Name = opt.namespace, noPolicy
		id, in.Policies = compile.ProfileID(noPolicy), append(slices.Clip(in.Policies), empty)
	}
	compiled := compile.Compile(in)
	verdict := compiled.Verdict(id)
	fail := func(problem string) (*governed, error) {
		return nil, &policyError{policy: cmp.Or(out.policy, opt.namespace+"/"+noPolicy), problems: []string{problem}}
	}
	switch {
	case !verdict.Accepted.OK:
		return fail(verdict.Accepted.Reason + ": " + verdict.Accepted.Message)
	case verdict.Baseline && policy != nil:
		return fail("it is a baseline and holds for other namespaces; name one of them")
	}
	doc := compiled.Document
	for i := range doc.Profiles {
		if p := &doc.Profiles[i]; p.ID == verdict.Profile {
			out.grant = review.Grant{Profile: p, Catalog: doc.Catalog(p)}
		}
	}
	if out.grant.Profile == nil {
		return fail("the router document has no profile of it")
	}
	out.defaultRoute = verdict.DefaultRoute
	out.remarks = slices.Concat(refusals(o), remarks(told, compiled))
	return out, nil
}

// transport is the wire protocol of a model, given as a route or by name; empty
// when no provider of the policy declares it.
func (g *governed) transport(model string) string {
	if route, err := router.ParseRoute(model); err == nil {
		if entry, ok := g.grant.Catalog.Find(route); ok {
			return entry.Provider.Transport
		}
	}
	declared := ""
	for entry := range g.grant.Catalog.All() {
		if entry.Model.Name != model {
			continue
		}
		if g.grant.Profile.Allows(entry.Route, entry.Provider.Name) {
			return entry.Provider.Transport
		}
		if declared == "" {
			declared = entry.Provider.Transport
		}
	}
	return declared
}
