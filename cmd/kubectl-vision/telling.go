// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// printAccounts prints what was found, in a format.
func printAccounts(format string, accounts []account, stdout, stderr io.Writer) error {
	switch format {
	case "json":
		_, err := io.WriteString(stdout, indented(map[string]any{"pods": accounts}))
		return err
	case "yaml":
		if err := printPods(accounts, stdout); err != nil {
			return err
		}
		stdout = stderr
	}
	var b strings.Builder
	for i := range accounts {
		if i > 0 {
			b.WriteString("\n")
		}
		accounts[i].text(&b)
	}
	_, err := io.WriteString(stdout, b.String())
	return err
}

// printPods prints the pods that would be injected, a document each.
func printPods(accounts []account, w io.Writer) error {
	for i := range accounts {
		pod := accounts[i].injected
		if pod == nil {
			continue
		}
		data, err := yaml.Marshal(pod)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}

// text is an account for people: who serves the pod, the checks, and what follows.
func (a *account) text(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	object := a.Kind + " " + a.Namespace + "/" + a.Name
	if a.Kind != "Pod" {
		object += ", a pod of its template"
	}
	line("Object", "%s", object)
	if p := a.Policy; p != nil {
		kind := "VisionPolicy"
		if p.Baseline {
			kind = "baseline"
		}
		line("Policy", "%s %s/%s, profile %s: %s", kind, p.Namespace, p.Name, p.Profile, p.Message)
	}
	if a.Mode != "" {
		line("Mode", "%s", a.Mode)
	}
	w.Flush()
	b.WriteString("\n")
	a.table(b)
	b.WriteString("\n")
	for _, u := range a.Unread {
		line("Unread", "%s: %s; %s", u.what(), u.Why, u.Means)
	}
	line("Admission", "%s", a.Admission.sentence())
	for _, n := range a.Refusal {
		line("Refusal", "%s: %s", n.Reason, n.Message)
	}
	for _, n := range a.Warnings {
		line("Warning", "%s: %s", n.Reason, n.Message)
	}
	if a.Now != nil {
		line("Now", "%s", a.Now.sentence())
	}
	w.Flush()
}

// table is a line for each check, and one more for each further note.
func (a *account) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tOUTCOME\tNOTES")
	for _, c := range a.Checks {
		if len(c.Notes) == 0 {
			fmt.Fprintf(w, "%s\t%s\t-\n", c.Check, c.Outcome)
		}
		for i, n := range c.Notes {
			check, outcome := c.Check, c.Outcome
			if i > 0 {
				check, outcome = "", ""
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", check, outcome, printable(string(n.Reason)+": "+n.Message))
		}
	}
	w.Flush()
}

// what names a thing that was not read.
func (u unread) what() string {
	text := u.Resource
	if u.Name != "" {
		text += " " + u.Name
	}
	if u.Namespace != "" {
		text += " of namespace " + u.Namespace
	}
	return text
}

// sentence says what admission would do.
func (a admission) sentence() string {
	switch a {
	case admissionInjected:
		return "Injected: created now, the pod gets the runtime"
	case admissionWithout:
		return "CreatedWithout: created now, the pod has no runtime"
	case admissionRefused:
		return "Refused: created now, the pod is refused"
	case admissionUnasked:
		return "NotAskedFor: nobody asks for the runtime, and the pod is created as it is"
	}
	return "Unknown: it depends on what could not be read"
}

// sentence says what a pod has.
func (n *now) sentence() string {
	switch n.State {
	case stateCurrent:
		return "Current: the pod has the runtime that it would get"
	case stateOutdated:
		return fmt.Sprintf("Outdated: the pod has another runtime than it would get (%s); delete it so that it is made again", strings.Join(n.Differs, ", "))
	case stateMissing:
		return "Missing: the pod has no runtime and would get it; it was created while the webhook could not be reached, or before its label or policy was there; delete it so that it is made again"
	case stateLeftover:
		return "Leftover: the pod has the runtime and would not get it now"
	case stateWithout:
		return "Without: the pod has no runtime"
	}
	if n.Injected {
		return "Unknown: the pod has the runtime; whether it would get the same depends on what could not be read"
	}
	return "Unknown: the pod has no runtime; whether it would get it depends on what could not be read"
}
