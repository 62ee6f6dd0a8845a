// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

// A call of a tool of this program that writes one file of 1,000, session and files together. It is meant to
// take less than a millisecond if it succeeds.
func BenchmarkToolCallInATransaction(b *testing.B) {
	host := sources(b, 1000)
	for _, fails := range []bool{false, true} {
		name := "succeeds"
		if fails {
			name = "fails"
		}
		b.Run(name, func(b *testing.B) {
			w, err := workspace.Open(b.Context(), &workspace.Options{Mounts: []workspace.HostMount{{HostPath: host}}, AllowAnyRoot: true})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = w.Close() }()
			note := tool.Must("note", "Write a file.", func(ctx context.Context, _ tool.None) (string, error) {
				fsys, _ := files.From(ctx)
				if err := fsys.WriteFile("note.txt", []byte("noted\n"), nil); err != nil || !fails {
					return "", err
				}
				return "", errors.New("not after all")
			})
			registry := tool.MustRegistry(&tool.Options{Around: workspace.ToolTx(w, session.ToolTx(session.New(nil), nil))}, note)
			for b.Loop() {
				if r := registry.Execute(b.Context(), tool.Call{Name: "note", Input: json.RawMessage(`{}`)}); r.OK() == fails {
					b.Fatal(r.Render())
				}
			}
		})
	}
}
