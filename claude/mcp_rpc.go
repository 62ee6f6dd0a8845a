// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

const (
	rpcInvalidRequest = -32600
	rpcNoMethod       = -32601
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// rpcAck answers messages that JSON-RPC does not answer: the control request that carried them is waiting all the same.
var rpcAck = json.RawMessage(`{"jsonrpc":"2.0","result":{},"id":0}`)

// An rpcMessage is a JSON-RPC message of the CLI, decoded once as far as tools need it. Without a method it is a response.
type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params rpcParams       `json:"params"`

	badParams bool // they do not have the shape below
}

type rpcParams struct {
	Name            string          `json:"name"`
	Arguments       json.RawMessage `json:"arguments"`
	ProtocolVersion string          `json:"protocolVersion"`
	RequestID       json.RawMessage `json:"requestId"`
	Meta            struct {
		ToolUseID     string          `json:"claudecode/toolUseId"`
		ProgressToken json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

// A directHandler answers a message that is already decoded. A nil reply means that none is due.
type directHandler func(ctx context.Context, msg *rpcMessage) json.RawMessage

func parseRPC(raw json.RawMessage) (*rpcMessage, error) {
	msg := new(rpcMessage)
	err := json.Unmarshal(raw, msg)
	var shape *json.UnmarshalTypeError
	if errors.As(err, &shape) && msg.Method != "" { // the rest has been decoded nevertheless
		msg.badParams = true
		return msg, nil
	}
	return msg, err
}

// isRequest reports whether an answer is due. An id of null counts as one: it is refused later.
func (m *rpcMessage) isRequest() bool { return m.Method != "" && m.ID != nil }

// validID allows what JSON-RPC allows: a string or a number.
func validID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

func rpcReply(id json.RawMessage, resultSize int) []byte {
	b := make([]byte, 0, len(id)+resultSize+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	return append(b, `,"result":`...)
}

func rpcResult(id, result json.RawMessage) json.RawMessage {
	b := rpcReply(id, len(result))
	b = append(b, result...)
	return append(b, '}')
}

func rpcError(id json.RawMessage, code int, message string) json.RawMessage {
	if !validID(id) {
		id = json.RawMessage("null")
	}
	b := make([]byte, 0, len(message)+80)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"error":{"code":`...)
	b = appendInt(b, code)
	b = append(b, `,"message":`...)
	b = appendJSONText(b, message)
	return append(b, `}}`...)
}

func appendInt(b []byte, n int) []byte {
	out, _ := json.Marshal(n) // an int always encodes
	return append(b, out...)
}

// oneLine checks JSON from outside and brings it onto one line: a broken or a folded message would end the CLI.
func oneLine(raw json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not valid JSON")
	}
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

const hexDigits = "0123456789abcdef"

// appendJSONText appends s as a JSON string. Broken UTF-8 becomes U+FFFD; HTML is left alone, since the model reads it.
func appendJSONText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), `\ufffd`...)
				start = i + 1
			}
			i += size
			continue
		}
		b = appendEscape(append(b, s[start:i]...), c)
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
