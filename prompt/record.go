// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// Record records in a session that a rendering of the prompt is about to be sent to an agent: a
// [session.PromptRendered], and the [session.RenderedTools] that belong to it. It returns the id by which
// these refer to each other. A [Live] prompt does this itself.
func (p *Prompt[Out]) Record(ctx context.Context, s *session.Session, r *Rendered, adapter string) (eventID string, err error) {
	return p.b.record(ctx, s, r, r.Tools, adapter)
}

func (b *binding) record(ctx context.Context, s *session.Session, r *Rendered, tools []*tool.Tool, adapter string) (string, error) {
	rendered := session.PromptRendered{
		EventID: s.NewID(), Namespace: r.Namespace, Key: r.Key, Name: r.Name,
		Adapter: adapter, Text: r.Text, Tools: names(tools), Params: b.recordedParams(),
	}
	var err error
	if rendered.Descriptor, err = plainjson.Marshal(r.Descriptor); err != nil {
		return "", fmt.Errorf("prompt: %s: recording the descriptor: %w", r.Name, err)
	}
	if _, err := s.Dispatch(ctx, rendered); err != nil {
		return "", err
	}
	_, err = s.Dispatch(ctx, session.RenderedTools{RenderEventID: rendered.EventID, Tools: toolSchemas(tools)})
	return rendered.EventID, err
}

// recordedParams are the bound values, without defaults, by the name of their type with its package. A type without a
// name has its Go spelling. A value without a JSON form is [tool.Unserializable]: it may be there for predicates.
func (b *binding) recordedParams() map[string]json.RawMessage {
	if len(b.values) == 0 {
		return nil
	}
	all := make(map[string]json.RawMessage, len(b.values))
	for typ, value := range b.values {
		raw, err := plainjson.Marshal(value.value)
		if err != nil {
			raw = json.RawMessage(`"` + tool.Unserializable + `"`)
		}
		name := typ.PkgPath() + "." + typ.Name()
		if typ.Name() == "" {
			name = typ.String()
		}
		all[name] = raw
	}
	return all
}

func toolSchemas(tools []*tool.Tool) []session.ToolSchema {
	all := make([]session.ToolSchema, 0, len(tools))
	for _, t := range tools {
		s := session.ToolSchema{Name: t.Name, Description: t.Description}
		if t.Input != nil {
			s.Parameters = t.Input.JSON()
		}
		all = append(all, s)
	}
	return all
}
