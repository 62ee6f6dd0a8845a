// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/ident"
)

// A continuity is which conversation a run belongs to, and how it can be continued.
type continuity struct {
	resumed string // the token of the conversation that is continued, if one is; later that of the last turn
	begun   string // the id of the new one, if one is begun
	entries int    // how much of it is continued, if it goes on as it was once
	kept    bool   // the CLI keeps a transcript, so that there is something to continue
	session string // as the CLI named it before the agent could do anything, or after a command to begin another
}

// named takes the id that the CLI gives the conversation after a prompt. The first one counts: later ones are the word of a
// process that commands of the agent may have reached. Only a prompt that clears the conversation gives it another id.
func (c continuity) named(session, prompt string) continuity {
	if c.session == "" || strings.HasPrefix(strings.TrimSpace(prompt), clearCommand) {
		c.session = session
	}
	return c
}

// continueConversation sets the options that select the conversation. A new one gets its id here: the CLI may not report it.
func continueConversation(o *claude.Options, req agent.Request) continuity {
	switch {
	case req.Fresh:
		o.Continue, o.Resume, o.Fork, o.ResumeAt, o.ResumeDropsTurn = false, "", false, "", nil
	case req.Resume != "":
		o.Continue, o.Resume = false, req.Resume
	}
	token := o.Resume
	session, entries, at := splitToken(token)
	o.Resume, o.ResumeAt, o.Fork = session, cmp.Or(at, o.ResumeAt), o.Fork || req.Fork || entries > 0
	goesOn := o.Continue || o.Resume != ""
	switch {
	case goesOn && !o.Fork: // neither can be changed
		o.SessionID, o.Title = "", ""
	case o.SessionID == "":
		o.SessionID = ident.NewUUID()
	}
	return continuity{resumed: token, entries: entries, begun: o.SessionID, kept: !o.NoPersistence}
}

// token is what continues the conversation after this run. The id that the CLI named first comes first. A run that
// has come to its result has left something to continue; one that broke off has only if the model or
// the user had sent a message. Otherwise the token that was resumed stays valid.
func (c continuity) token(n *normaliser, resulted bool) string {
	switch {
	case !c.kept:
		return ""
	case !resulted && !n.active:
		return c.resumed
	case resulted:
		return cmp.Or(c.session, c.resumed, c.begun)
	}
	return cmp.Or(c.session, c.begun, c.resumed)
}
