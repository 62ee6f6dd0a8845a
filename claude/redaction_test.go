// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// plantedKey is what must not be found in anything that is made for people to read.
const plantedKey = "sk-ant-api03-PLANTED0planted1PLANTED2planted3PLANTED4"

// shapelessKey is a secret that does not look like one: only the environment shows it.
const shapelessKey = "correct horse battery"

// A key reaches the client from everywhere: the environment, what the CLI prints, what the model's
// service answers, the errors of callbacks. None of it may reach a log or an error text.
// Messages are data and keep what the CLI wrote.
func TestRedaction_NoKeyInLogsAndErrors(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Stderr("starting with " + plantedKey)
		s.Initialize("")
		s.Await("user")
		s.Line(`{"broken": "` + plantedKey + `"`)
		s.Line("not JSON at all " + plantedKey)
		s.Reply(s.Ask("hook_callback", `{"callback_id":"hook_1_0","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},"tool_use_id":"t"}}`))
		s.Reply(s.Ask("can_use_tool", `{"tool_name":"Bash","input":{},"tool_use_id":"t"}`))
		s.Line(`{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401 invalid x-api-key ` + plantedKey + ` or ` + shapelessKey + `","api_error_status":401,"session_id":"s","uuid":"u"}`)
		s.State("idle")
		s.Refuse(s.Await("control_request"), "bad key "+plantedKey+" and "+shapelessKey, "check_failed")
		s.Await("user")
		s.Stderr("dying with ANTHROPIC_API_KEY=" + plantedKey + " " + shapelessKey)
		s.Exit(3)
	})
	var logged bytes.Buffer
	opts := cli.Options()
	opts.Env = claude.ExactEnv(map[string]string{"ANTHROPIC_API_KEY": plantedKey, "GATEWAY_TOKEN": shapelessKey})
	opts.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opts.Hooks = []claude.Hook{claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		return nil, errors.New("cannot ask the policy server with key " + plantedKey + " " + shapelessKey)
	})}
	opts.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
		panic("no policy for " + plantedKey + " " + shapelessKey)
	}
	c := claudetest.Connect(t, opts)
	texts := map[string]string{}
	_, messages, err := collect(c.Turn(t.Context(), claude.Text("go")))
	texts["error result"] = advice.Text(err)
	for _, m := range of[*claude.MalformedLine](messages) {
		texts["malformed line"] = advice.Text(m.Err)
	}
	_, err = c.Request(t.Context(), "get_settings", nil)
	texts["refused request"] = advice.Text(err)
	_, _, err = collect(c.Turn(t.Context(), claude.Text("again")))
	texts["death of the CLI"] = advice.Text(err)
	texts["log"] = logged.String()
	for _, want := range []string{"error result", "malformed line", "refused request", "death of the CLI", "log"} {
		if got := texts[want]; got == "" || got == "<nil>" {
			t.Errorf("%s: the text is empty, so nothing was tested", want)
		}
	}
	for where, text := range texts {
		if strings.Contains(text, plantedKey) || strings.Contains(text, "PLANTED2") || strings.Contains(text, shapelessKey) {
			t.Errorf("%s shows the key: %s", where, text)
		}
	}
	for _, want := range []string{"policy server", "no policy for", "dying with"} {
		if !strings.Contains(texts["log"]+texts["death of the CLI"], want) {
			t.Errorf("the words around the key are gone too: %q is nowhere", want)
		}
	}
}
