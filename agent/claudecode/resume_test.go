// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/ident"
)

func TestResume_ConversationOfARun(t *testing.T) {
	const id = "6f9619ff-8b86-4d11-b42d-00c04fc964ff"
	type setOptions struct {
		resume, session, title string
		goesOn, fork           bool
	}
	for name, x := range map[string]struct {
		base claude.Options
		req  agent.Request
		want setOptions // session "new" stands for any UUID
	}{
		"a new one":                 {want: setOptions{session: "new"}},
		"a new one with an id":      {base: claude.Options{SessionID: id}, want: setOptions{session: id}},
		"a token":                   {req: agent.Request{Resume: "t"}, want: setOptions{resume: "t"}},
		"a token beats the base":    {base: claude.Options{Continue: true, SessionID: id, Title: "x"}, req: agent.Request{Resume: "t"}, want: setOptions{resume: "t"}},
		"the base's":                {base: claude.Options{Resume: "b"}, want: setOptions{resume: "b"}},
		"the newest":                {base: claude.Options{Continue: true}, want: setOptions{goesOn: true}},
		"fresh beats the base":      {base: claude.Options{Resume: "b", Fork: true, ResumeAt: "u"}, req: agent.Request{Fresh: true}, want: setOptions{session: "new"}},
		"fresh beats a token":       {req: agent.Request{Fresh: true, Resume: "t"}, want: setOptions{session: "new"}},
		"a snapshot is a fork":      {req: agent.Request{Resume: id + "@3"}, want: setOptions{resume: id, session: "new", fork: true}},
		"a snapshot of nothing":     {req: agent.Request{Resume: "t@3"}, want: setOptions{resume: "t@3"}},
		"fresh beats a snapshot":    {req: agent.Request{Fresh: true, Resume: id + "@3"}, want: setOptions{session: "new"}},
		"a fork has an id":          {base: claude.Options{Fork: true, Title: "x"}, req: agent.Request{Resume: "t"}, want: setOptions{resume: "t", session: "new", title: "x", fork: true}},
		"a fork has the id it gets": {base: claude.Options{Fork: true, SessionID: id}, req: agent.Request{Resume: "t"}, want: setOptions{resume: "t", session: id, fork: true}},
	} {
		t.Run(name, func(t *testing.T) {
			o := x.base
			continueConversation(&o, x.req)
			got := setOptions{o.Resume, o.SessionID, o.Title, o.Continue, o.Fork}
			if x.want.session == "new" && ident.ValidUUID(got.session) {
				got.session = "new"
			}
			if got != x.want {
				t.Errorf("got %+v, want %+v", got, x.want)
			}
		})
	}
	one, two := claude.Options{}, claude.Options{}
	continueConversation(&one, agent.Request{})
	continueConversation(&two, agent.Request{})
	if one.SessionID == two.SessionID {
		t.Error("two runs have the same session id")
	}
}

// The rule in full: the last id that the CLI sent, if it reported how the turn ended or the turn has a
// message; else what was resumed.
func TestResumeToken_OfAConversation(t *testing.T) {
	for name, x := range map[string]struct {
		session  continuity
		backend  string
		active   bool
		resulted bool
		want     string
	}{
		"a result":                              {continuity{begun: "new", kept: true}, "backend", true, true, "backend"},
		"a result, and no session was named":    {continuity{begun: "new", kept: true}, "", true, true, "new"},
		"a resumed one, and none was named":     {continuity{resumed: "old", kept: true}, "", false, true, "old"},
		"a resumed one with another session":    {continuity{resumed: "old", kept: true}, "backend", true, true, "backend"},
		"stopped in the middle":                 {continuity{begun: "new", kept: true}, "backend", true, false, "backend"},
		"stopped before a session was named":    {continuity{begun: "new", kept: true}, "", true, false, "new"},
		"stopped after init alone":              {continuity{begun: "new", kept: true}, "backend", false, false, ""},
		"a resumed one stopped after init":      {continuity{resumed: "old", kept: true}, "backend", false, false, "old"},
		"a fork stopped after init":             {continuity{resumed: "old", begun: "new", kept: true}, "new", false, false, "old"},
		"a fork stopped in the middle":          {continuity{resumed: "old", begun: "new", kept: true}, "", true, false, "new"},
		"a result of which nothing is kept":     {continuity{begun: "new"}, "backend", true, true, ""},
		"stopped, and nothing would be kept":    {continuity{resumed: "old"}, "backend", false, false, ""},
		"stopped before the first message":      {continuity{begun: "new", kept: true}, "", false, false, ""},
		"a resumed one stopped before anything": {continuity{resumed: "old", kept: true}, "", false, false, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			got := x.session.named(x.backend, "").token(&normaliser{active: x.active}, x.resulted)
			if got != x.want {
				t.Errorf("the token is %q, want %q", got, x.want)
			}
		})
	}
}

// The id that the CLI gives the conversation first counts; only a prompt that clears it gives it another one.
func TestNamed_LaterSessionsDoNotCount(t *testing.T) {
	c := continuity{begun: "begun", kept: true}
	for _, step := range []struct{ session, prompt, want string }{
		{"", "go", "begun"},
		{"first", "go", "first"},
		{"forged", "go", "first"},
		{"forged", "", "first"},
		{"second", " /clear", "second"},
		{"forged", "go on", "second"},
	} {
		c = c.named(step.session, step.prompt)
		if got := c.token(&normaliser{active: true}, true); got != step.want {
			t.Errorf("after %q with %q the token is %q, want %q", step.prompt, step.session, got, step.want)
		}
	}
}
