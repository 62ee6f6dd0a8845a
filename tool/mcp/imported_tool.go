// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// CodeServerGone is the code of calls whose server ended, or cannot be reached. The call may have been done nevertheless.
const CodeServerGone = "SERVER_GONE"

func (im *Imported) convert(remote *sdk.Tool) (*tool.Tool, error) {
	name := im.opts.Prefix + remote.Name
	if remote.Name == "" {
		name = ""
	}
	local, err := localName(name)
	if err != nil {
		return nil, err
	}
	t := &tool.Tool{Name: local, Namespace: im.name, Title: remote.Title, Description: remote.Description, Handler: im.handler(remote.Name)}
	if remote.Annotations != nil {
		t.Title = cmp.Or(t.Title, remote.Annotations.Title)
	}
	t.Description = cmp.Or(t.Description, t.Title, fmt.Sprintf(plainDescription, remote.Name, im.name))
	t.Risk, t.Capabilities = risksOf(remote, im.opts.Trust)
	im.takeSchemas(t, remote)
	if im.opts.Adjust != nil {
		im.opts.Adjust(t)
	}
	return t, t.Check()
}

// takeSchemas takes over the schemas. A tool whose schema this side cannot read is not lost: the
// server checks the arguments, and the model reads the schema in the description.
func (im *Imported) takeSchemas(t *tool.Tool, remote *sdk.Tool) {
	text, input, err := objectSchema(remote.InputSchema)
	t.Input = input
	if err != nil {
		im.opts.Logger.Warn("arguments of an imported tool are not checked on this side", "server", im.name, "tool", remote.Name, "error", err)
		t.Description += schemaInText + text
	}
	if _, t.Output, err = objectSchema(remote.OutputSchema); err != nil {
		im.opts.Logger.Warn("results of an imported tool are not checked on this side", "server", im.name, "tool", remote.Name, "error", err)
	}
}

// objectSchema reads a schema of an object. None at all is fine.
func objectSchema(value any) (text string, s *schema.Schema, err error) {
	if value == nil {
		return "", nil, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "", nil, err
	}
	s, err = schema.Parse(raw)
	switch {
	case err != nil:
		return string(raw), nil, err
	case !s.IsObject():
		return string(raw), nil, errors.New(`the schema has no "type":"object" at its root`)
	}
	return string(raw), s, nil
}

// risksOf reads the hints of a server. Without trust a tool is what MCP assumes of one that says nothing: it changes things,
// may do lasting harm, and reaches the network. Hints can then only add to that.
func risksOf(remote *sdk.Tool, trust bool) (tool.Risk, tool.Capability) {
	risk, needs := tool.Mutates|tool.Dangerous, tool.NetworkAccess
	ours, isOurs := fromMeta[riskMeta](remote.Meta, metaRisk)
	ownRisk, ownNeeds := ours.flags()
	switch a := remote.Annotations; {
	case !trust:
		return risk, needs | ownNeeds
	case isOurs:
		return ownRisk, ownNeeds
	case a == nil:
		return risk, needs
	default:
		destructive := a.DestructiveHint == nil || *a.DestructiveHint
		if a.ReadOnlyHint && (a.DestructiveHint == nil || !destructive) {
			risk = tool.ReadOnly // unless it contradicts itself
		} else if !destructive {
			risk = tool.Mutates
		}
		if a.OpenWorldHint != nil && !*a.OpenWorldHint {
			needs = 0
		}
		return risk, needs
	}
}

func (im *Imported) handler(remote string) tool.Handler {
	return func(ctx context.Context, input json.RawMessage) (tool.Result, error) {
		if !im.begin() {
			return tool.Result{}, im.failure(errImportClosed)
		}
		defer im.calls.Done()
		calling, cancel := within(ctx, im.life, errImportClosed)
		defer cancel(nil)
		params := &sdk.CallToolParams{Name: remote, Arguments: input, Meta: sdk.Meta{}}
		if call, ok := tool.CallFrom(ctx); ok && call.ID != "" {
			params.Meta[metaToolUseID] = string(call.ID)
		}
		token := strconv.FormatInt(im.tokens.Add(1), 10)
		im.listeners.Store(token, ctx)
		defer im.listeners.Delete(token)
		params.SetProgressToken(token)
		result, err := im.session.CallTool(calling, params)
		if err != nil && calling.Err() != nil && errors.Is(err, calling.Err()) {
			im.cancelled.Add(1)
		}
		switch {
		case ctx.Err() != nil:
			return tool.Result{}, ctx.Err()
		case err != nil:
			return tool.Result{}, im.failure(err)
		}
		return resultFrom(result), nil
	}
}

// progress passes a report of the server on to the call that it is about.
func (im *Imported) progress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	ctx, ok := im.listeners.Load(req.Params.ProgressToken)
	if !ok {
		return // of a call that is over
	}
	if err := tool.Progress(ctx.(context.Context), req.Params.Progress, req.Params.Total, req.Params.Message); err != nil {
		im.opts.Logger.Debug("progress was not reported", "server", im.name, "error", err)
	}
}

// failure distinguishes a server that refused a call from one that is lost.
func (im *Imported) failure(err error) *tool.Error {
	refused := refusal(err)
	switch {
	case im.life.Err() != nil:
		return &tool.Error{
			Code: CodeServerGone, Category: tool.CategoryTransient, Err: err,
			Message: fmt.Sprintf(serverClosed, im.name),
		}
	case refused != nil && !errors.Is(err, sdk.ErrConnectionClosed):
		return &tool.Error{
			Code: tool.CodeFailed, Category: categoryOf(refused.Code), Err: err,
			Message: fmt.Sprintf(callRefused, im.name, refused.Message),
		}
	}
	cause := im.link.gone()
	if cause != "" {
		cause = " (" + cause + ")"
	}
	return &tool.Error{
		Code: CodeServerGone, Category: tool.CategoryTransient, Retryable: true, Err: err,
		Message: fmt.Sprintf(serverLost, im.name, cause),
	}
}

// codeNotSent is the SDK's own, for a message that its transport could not deliver. It wraps the
// reason, which may be an answer of the server after all.
const codeNotSent = -32005

func refusal(err error) *jsonrpc.Error {
	if e, ok := err.(*jsonrpc.Error); ok && e.Code != codeNotSent { //nolint:errorlint // this is the walk
		return e
	}
	switch e := err.(type) { //nolint:errorlint // this is the walk
	case interface{ Unwrap() error }:
		return refusal(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if found := refusal(inner); found != nil {
				return found
			}
		}
	}
	return nil
}

func categoryOf(code int64) tool.Category {
	switch code {
	case jsonrpc.CodeInvalidParams:
		return tool.CategoryValidation
	case jsonrpc.CodeMethodNotFound:
		return tool.CategoryNotFound
	}
	return tool.CategoryInternal
}
