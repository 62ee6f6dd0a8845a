// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"

	"github.com/drover-agents/drover/schema"
)

// A Tool is one in-process tool. The model calls it mcp__<server>__<name>.
type Tool struct {
	// Name has letters, digits, "_" and "-", at most 64.
	Name        string
	Description string
	// Title is a name for people. Empty leaves it out.
	Title string
	// InputSchema describes the arguments, an object. They are checked against it before Handler
	// runs, which the CLI does not do; whole numbers that the CLI may have rounded are refused, see
	// [schema.Schema.ValidateDoubles]. Nil means any object.
	InputSchema *schema.Schema
	// CheckedByHandler leaves the check of the arguments to Handler.
	CheckedByHandler bool
	// OutputSchema describes ToolResult.Structured, which is checked against it. A whole number in it
	// that the CLI would round is an error. Nil means none.
	OutputSchema *schema.Schema
	Annotations  ToolAnnotations
	// AlwaysLoad sends the tool to the model from the start instead of behind tool search.
	AlwaysLoad bool
	// SearchHint helps tool search to find the tool.
	SearchHint string
	// MaxResultSizeChars raises the size up to which the model sees a result whole. Zero: the CLI's default, some 70,000.
	MaxResultSizeChars int
	// Meta is passed on as _meta, beside the keys of the fields above.
	Meta map[string]any
	// Handler runs the tool. Its error, like a panic in it, is shown to the model as a failed call. The context ends when
	// the CLI cancels the call; it carries the tool use id ([ToolUseIDFromContext]) and takes progress ([ReportProgress]).
	Handler func(ctx context.Context, args json.RawMessage) (ToolResult, error)
}

// ToolAnnotations are hints about what a tool does. The zero value gives none.
type ToolAnnotations struct {
	// ReadOnly lets the CLI run calls of the tool concurrently; others run one at a time.
	ReadOnly bool
	// Destructive is for tools that may delete or overwrite. Nil leaves it out.
	Destructive *bool
	// Idempotent is for tools that change nothing when called again with the same arguments.
	Idempotent bool
	// OpenWorld is for tools that reach other systems. Nil leaves it out.
	OpenWorld *bool
}

// NewTool makes a tool of a typed function, for programs that use this package alone. Use tool.New for tools of
// evaluations, tools behind a gate, and tools for other MCP clients.
//
// The arguments' schema comes from In, which must be a struct or a map: see [schema.ForType] for the tags it understands.
func NewTool[In any](name, description string, fn func(context.Context, In) (ToolResult, error)) (Tool, error) {
	input, err := schema.For[In]()
	if err != nil {
		return Tool{}, fmt.Errorf("claude: tool %s: %w", name, err)
	}
	t := Tool{Name: name, Description: description, InputSchema: input}
	t.Handler = func(ctx context.Context, args json.RawMessage) (ToolResult, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return ToolResult{}, fmt.Errorf("arguments: %w", err)
		}
		return fn(ctx, in)
	}
	if fn == nil {
		t.Handler = nil
	}
	return t, t.check()
}

// MustTool is [NewTool] for tools written into a program; it panics on an error, which only a wrong
// name or an In without a JSON form can cause.
func MustTool[In any](name, description string, fn func(context.Context, In) (ToolResult, error)) Tool {
	t, err := NewTool(name, description, fn)
	if err != nil {
		panic(err)
	}
	return t
}

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

func (t *Tool) check() error {
	var errs []error
	if !toolName().MatchString(t.Name) {
		errs = append(errs, errors.New("field Name must be 1 to 64 letters, digits, _ or -"))
	}
	if t.Handler == nil {
		errs = append(errs, errors.New("field Handler is nil"))
	}
	if t.InputSchema != nil && !t.InputSchema.IsObject() {
		errs = append(errs, errors.New(`InputSchema must have "type":"object" at its root`))
	}
	if t.OutputSchema != nil && !t.OutputSchema.IsObject() {
		errs = append(errs, errors.New(`OutputSchema must have "type":"object" at its root`))
	}
	if t.MaxResultSizeChars < 0 {
		errs = append(errs, errors.New("MaxResultSizeChars is negative"))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("claude: tool %q: %w", t.Name, errors.Join(errs...))
}

// describedTool is a tool as tools/list shows it.
type describedTool struct {
	Name         string           `json:"name"`
	Title        string           `json:"title,omitempty"`
	Description  string           `json:"description"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema,omitempty"`
	Annotations  *toolAnnotations `json:"annotations,omitempty"`
	Meta         map[string]any   `json:"_meta,omitempty"`
}

type toolAnnotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

func (t *Tool) describe() describedTool {
	d := describedTool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: json.RawMessage(`{"type":"object"}`), Meta: t.meta()}
	if t.InputSchema != nil {
		d.InputSchema = t.InputSchema.JSON()
	}
	if t.OutputSchema != nil {
		d.OutputSchema = t.OutputSchema.JSON()
	}
	a := toolAnnotations{t.Title, t.Annotations.ReadOnly, t.Annotations.Destructive, t.Annotations.Idempotent, t.Annotations.OpenWorld}
	if a != (toolAnnotations{}) {
		d.Annotations = &a
	}
	return d
}

// meta puts the hints where MCP clients do not strip them.
func (t *Tool) meta() map[string]any {
	m := maps.Clone(t.Meta)
	if m == nil {
		m = map[string]any{}
	}
	if t.AlwaysLoad {
		m["anthropic/alwaysLoad"] = true
	}
	if t.SearchHint != "" {
		m["anthropic/searchHint"] = t.SearchHint
	}
	if t.MaxResultSizeChars > 0 {
		m["anthropic/maxResultSizeChars"] = t.MaxResultSizeChars
	}
	return m
}
