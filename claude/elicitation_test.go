// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const elicitationRequest = `{"subtype":"elicitation","mcp_server_name":"els","message":"who?","mode":"form","requested_schema":{"type":"object"},"property_order":["name"],"title":"T","display_name":"D","description":"X","url":"u","elicitation_id":"e1"}`

func TestElicitation_Serve(t *testing.T) {
	answers := func(a ElicitationAnswer, err error) ElicitationHandler {
		return func(context.Context, *ElicitationRequest) (ElicitationAnswer, error) { return a, err }
	}
	const declined = `{"action":"decline"}`
	tests := []struct {
		name string
		fn   ElicitationHandler
		want string
	}{
		{"no handler", nil, declined},
		{"accept", answers(ElicitationAnswer{Action: ElicitAccept, Content: map[string]string{"name": "bob"}}, nil), `{"action":"accept","content":{"name":"bob"}}`},
		{"accept without content", answers(ElicitationAnswer{Action: ElicitAccept}, nil), `{"action":"accept"}`},
		{"zero answer", answers(ElicitationAnswer{}, nil), declined},
		{"decline drops content", answers(ElicitationAnswer{Action: ElicitDecline, Content: 1}, nil), declined},
		{"cancel", answers(ElicitationAnswer{Action: ElicitCancel, Content: 1}, nil), `{"action":"cancel"}`},
		{"error", answers(ElicitationAnswer{Action: ElicitAccept}, errors.New("x")), declined},
		{"unknown action", answers(ElicitationAnswer{Action: "maybe"}, nil), declined},
		{"unsendable", answers(ElicitationAnswer{Action: ElicitAccept, Content: func() {}}, nil), declined},
		{"panic", func(context.Context, *ElicitationRequest) (ElicitationAnswer, error) { panic("x") }, declined},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := serveElicitation(t.Context(), slog.New(slog.DiscardHandler), tt.fn, []byte(elicitationRequest)); string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestElicitationRequest_Fields(t *testing.T) {
	var got ElicitationRequest
	serveElicitation(t.Context(), slog.New(slog.DiscardHandler), func(_ context.Context, r *ElicitationRequest) (ElicitationAnswer, error) {
		got = *r
		return ElicitationAnswer{}, nil
	}, []byte(elicitationRequest))
	want := ElicitationRequest{"els", "who?", "form", "u", "e1", json.RawMessage(`{"type":"object"}`), []string{"name"}, "T", "D", "X", json.RawMessage(elicitationRequest)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDialog_Serve(t *testing.T) {
	const request = `{"subtype":"request_user_dialog","dialog_kind":"trust","payload":{"p":1},"tool_use_id":"toolu_1"}`
	answers := func(a DialogAnswer, err error) DialogHandler {
		return func(_ context.Context, r *DialogRequest) (DialogAnswer, error) {
			if r.Kind != "trust" || string(r.Payload) != `{"p":1}` || r.ToolUseID != "toolu_1" {
				return DialogAnswer{}, errors.New("request is not what was sent")
			}
			return a, err
		}
	}
	tests := []struct {
		name  string
		fn    DialogHandler
		kinds []string
		want  string // "" for no answer
	}{
		{"no handler", nil, []string{"trust"}, ""},
		{"undeclared kind", answers(DialogAnswer{}, nil), []string{"other"}, ""},
		{"completed", answers(DialogAnswer{Result: map[string]bool{"ok": true}}, nil), []string{"trust"}, `{"behavior":"completed","result":{"ok":true}}`},
		{"completed with nothing", answers(DialogAnswer{}, nil), []string{"trust"}, `{"behavior":"completed","result":null}`},
		{"cancelled", answers(DialogAnswer{Cancelled: true, Result: 1}, nil), []string{"trust"}, `{"behavior":"cancelled"}`},
		{"error", answers(DialogAnswer{Result: 1}, errors.New("x")), []string{"trust"}, `{"behavior":"cancelled"}`},
		{"panic", func(context.Context, *DialogRequest) (DialogAnswer, error) { panic("x") }, []string{"trust"}, `{"behavior":"cancelled"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := serveDialog(t.Context(), slog.New(slog.DiscardHandler), tt.fn, tt.kinds, []byte(request))
			if string(got) != tt.want || ok != (tt.want != "") {
				t.Errorf("got %s, %v, want %q", got, ok, tt.want)
			}
		})
	}
}
