// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"strings"

	"github.com/visionoperator/vision-operator/test/upstream"
)

// Scenario is one conversation: what the model says, and what the human does.
type Scenario struct {
	Name string
	// Script is what the model says; its images lie in a folder of the conversation's own.
	Script func(folder string) []upstream.Answer
	// Opening is what the human says first; "" asks to look at the screen.
	Opening string
	// Human is what the human says whenever the model has answered with a text.
	Human []string
	// Beside is what the human says together with the results of a turn.
	Beside map[int]string
}

// Script is the script of the conversation that was opened so, for upstream.Options.
func Script(opening string) []upstream.Answer {
	for _, s := range Scenarios() {
		if answers := s.Serve(opening); answers != nil {
			return answers
		}
	}
	var views int
	var folder string
	if n, _ := fmt.Sscanf(opening, "[%d views in turn %s", &views, &folder); n == 2 {
		return Long(views).Script(strings.TrimSuffix(folder, "]"))
	}
	return nil
}

// Serve is the script of this scenario's conversations alone, for upstream.Options.
func (s Scenario) Serve(opening string) []upstream.Answer {
	rest, ok := strings.CutPrefix(opening, "["+s.Name+" ")
	folder, _, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return nil
	}
	return s.Script(folder)
}

// Long is a conversation of so many views, one after the other: more than a budget takes.
func Long(views int) Scenario {
	return Scenario{Name: fmt.Sprintf("%d views in turn", views), Script: func(f string) []upstream.Answer {
		var turns []upstream.Answer
		for i := range views {
			turns = append(turns, say(look(fmt.Sprintf("%s/shot-%d.png", f, i))))
		}
		return append(turns, text("Seen."))
	}}
}

// say makes a turn of calls.
func say(calls ...upstream.Call) upstream.Answer { return upstream.Answer{Calls: calls} }

// text makes a turn of a text.
func text(t string) upstream.Answer { return upstream.Answer{Text: t} }

// broken makes a turn that is broken off once.
func broken(a upstream.Answer) upstream.Answer {
	a.Break = true
	return a
}

// run is a call of a tool that has nothing to do with images.
func run() upstream.Call {
	return upstream.Call{Name: "run_command", Arguments: `{"command":"go test ./... | head -n 3"}`}
}

// view is a call of a tool that looks at a file: Workspace does with it as its name says.
func view(tool, path string) upstream.Call {
	return upstream.Call{Name: tool, Arguments: `{"path":"` + path + `","prompt":"What does the \"button\" say?"}`}
}

func look(path string) upstream.Call { return view("view_image", path) }

// custom makes a call one of a custom tool, where the dialect has those.
func custom(c upstream.Call) upstream.Call {
	c.Custom = true
	return c
}

// Scenarios are all conversations, of six turns of the model's each.
func Scenarios() []Scenario {
	again := []string{"And what now?"}
	return []Scenario{
		{Name: "views in a row", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f + "/shot-1.png")), say(look(f + "/shot-2.png")), say(run()), text("Looks fine."), say(look(f + "/shot-3.png")), text("Fine still.")}
		}},
		{Name: "a text with its calls", Human: again, Script: func(f string) []upstream.Answer {
			with := say(look(f + "/shot-1.png"))
			with.Text = "I look at it: \"ü 漢字\"."
			return []upstream.Answer{with, say(run()), with, text("Looks fine."), say(look(f + "/shot-3.png")), text("Fine still.")}
		}},
		{Name: "two views in one turn", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f+"/shot-1.png"), look(f+"/shot-2.png")), say(run()), say(look(f+"/shot-3.png"), look(f+"/shot-4.png")), text("Two."), say(look(f + "/shot-5.png")), text("One.")}
		}},
		{Name: "a failed view", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f + "/missing-1.png")), say(look(f + "/shot-1.png")), say(look(f+"/missing-2.png"), look(f+"/shot-2.png")), text("Half."), say(look(f + "/missing-3.png")), text("None.")}
		}},
		{Name: "a damaged image", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f + "/damaged-1.png")), say(look(f + "/shot-1.png")), say(look(f+"/damaged-2.png"), look(f+"/shot-2.png")), text("Half."), say(run()), text("None.")}
		}},
		{Name: "an interrupted turn", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f + "/shot-1.png")), broken(say(look(f + "/shot-2.png"))), say(run()), broken(text("This was broken off, and is said once more from its beginning to its end.")), say(look(f + "/shot-3.png")), text("Whole.")}
		}},
		{Name: "no image at all", Human: again, Script: func(string) []upstream.Answer {
			return []upstream.Answer{say(run()), say(run(), run()), text("Nothing to see."), say(run()), say(run()), text("Nothing still.")}
		}},
		{Name: "parallel calls", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(run(), look(f+"/shot-1.png"), run()), say(look(f+"/shot-2.png"), run()), say(run(), look(f+"/shot-3.png")), text("All at once."), say(run(), run()), text("Done with it.")}
		}},
		{Name: "names of MCP tools", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(view("mcp__files__view_image", f+"/shot-1.png")), say(view("files__ViewImage", f+"/shot-2.png")), say(view("mcp_files_view_image", f+"/shot-3.png")), text("Seen."), say(view("ViewImage", f+"/shot-4.png")), text("Seen again.")}
		}},
		{Name: "custom tools", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(custom(look(f + "/shot-1.png"))), say(custom(look(f+"/shot-2.png")), run()), say(custom(run()), look(f+"/own-1.png")), text("Seen."), say(custom(look(f + "/missing-1.png"))), text("Not seen.")}
		}},
		{Name: "a tool with its own image", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f + "/own-1.png")), say(look(f + "/shot-1.png")), say(look(f+"/own-2.png"), look(f+"/shot-2.png")), text("Seen."), say(look(f + "/own-3.png")), text("Seen again.")}
		}},
		{Name: "one path with different contents", Human: again, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f + "/shot-1.png")), say(look(f + "/shot-1.png")), say(run()), say(look(f + "/shot-1.png")), text("Three."), text("Three still.")}
		}},
		{Name: "a word beside the results", Human: again, Beside: map[int]string{0: "Hurry up.", 2: "Wait."}, Script: func(f string) []upstream.Answer {
			return []upstream.Answer{say(look(f + "/shot-1.png")), say(look(f+"/shot-2.png"), run()), say(look(f+"/shot-3.png"), look(f+"/shot-4.png")), text("Four."), say(run()), text("Four still.")}
		}},
	}
}
