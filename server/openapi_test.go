// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/drover-agents/drover/server"
	"github.com/drover-agents/drover/server/testdata/client"
)

var update = flag.Bool("update", false, "rewrite testdata/openapi.json; go generate ./server then makes the client of it")

// The client of the tests is made of the document; -update writes that.
//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -package client -generate types,client,spec -o testdata/client/client.gen.go testdata/openapi.json

// A description is the OpenAPI document of the API, as the validator has it.
type description struct {
	doc    *openapi3.T
	router routers.Router
}

// described reads the document once for all tests.
var described = sync.OnceValues(func() (*description, error) {
	text, err := server.OpenAPI()
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	doc.Servers = nil // a test has another port
	router, err := legacy.NewRouter(doc, openapi3.IsOpenAPI31OrLater())
	if err != nil {
		return nil, err
	}
	for _, media := range []string{"text/event-stream", "application/jsonl", "text/x-diff", "application/zip"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	return &description{doc, router}, nil
})

// check compares an answer with the document, and the request too if it was accepted.
func (d *description) check(r *http.Request, body string, resp *http.Response, answer []byte) error {
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		return err
	}
	if err := d.checkAnswer(r, resp, answer); err != nil || resp.StatusCode >= 300 || route.Operation.OperationID == "openBundle" {
		return err
	}
	own := r.Clone(context.Background())
	own.Body = io.NopCloser(strings.NewReader(body))
	return openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{Request: own, PathParams: params, Route: route, Options: asDescribed})
}

var asDescribed = &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true}

func (d *description) checkAnswer(r *http.Request, resp *http.Response, answer []byte) error {
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		return err
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: asDescribed}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(answer)), Options: in.Options,
	})
}

// The document is OpenAPI 3.1 for a validator, with an operation for each route, and its examples fit their schemas.
func TestOpenAPI_IsValid(t *testing.T) {
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	ids := map[string]bool{}
	for _, pattern := range server.Patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		item := d.doc.Paths.Value(path)
		if item == nil || item.GetOperation(method) == nil {
			t.Errorf("%s is not described", pattern)
			continue
		}
		o := item.GetOperation(method)
		if o.OperationID == "" || o.Summary == "" || ids[o.OperationID] || o.Responses.Len() < 8 {
			t.Errorf("%s is described as %q %q with %d answers", pattern, o.OperationID, o.Summary, o.Responses.Len())
		}
		ids[o.OperationID] = true
	}
	if d.doc.OpenAPI != "3.1.0" || len(d.doc.Components.Schemas) < 10 || len(ids) != len(server.Patterns()) {
		t.Errorf("OpenAPI %s with %d schemas and %d operations", d.doc.OpenAPI, len(d.doc.Components.Schemas), len(ids))
	}
}

// What is not in the document is found: otherwise the checks of all other tests would say nothing.
func TestOpenAPI_OtherAnswersAreFound(t *testing.T) {
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status       int
		media, text  string
		method, path string
	}{
		"status":         {418, "application/problem+json", `{"type":"about:blank","title":"","status":418,"detail":""}`, "GET", "/v1/runs"},
		"media":          {200, "text/html", "<p>", "GET", "/v1/runs"},
		"field":          {200, "application/json", `{"readOnly":true,"start":true,"now":"2026-01-02T15:04:05Z","more":1}`, "GET", "/v1/server"},
		"missing field":  {200, "application/json", `{"readOnly":true,"start":true}`, "GET", "/v1/server"},
		"type of field":  {200, "application/json", `{"readOnly":"yes","start":true,"now":"2026-01-02T15:04:05Z"}`, "GET", "/v1/server"},
		"problem":        {404, "application/problem+json", `{"detail":"gone"}`, "GET", "/v1/runs/x"},
		"no such path":   {200, "application/json", `{}`, "GET", "/v1/other"},
		"no such method": {200, "application/json", `{}`, "POST", "/v1/server"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}}
		if err := d.check(r, "", resp, []byte(c.text)); err == nil {
			t.Errorf("%s: the validator accepts %s", name, c.text)
		}
	}
}

// The file of the document is that of the API: the client of the tests is made of it.
func TestOpenAPI_FileIsCurrent(t *testing.T) {
	text, err := server.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.GetSpecJSON()
	if err != nil {
		t.Fatal(err)
	}
	if now, then := strippedSpec(t, text), strippedSpec(t, made); !reflect.DeepEqual(now, then) {
		t.Error("the client is not made of this document: run go generate ./server")
	}
	if file, err := os.ReadFile(path); err != nil || !bytes.Equal(bytes.TrimSpace(file), text) {
		t.Errorf("%s is not that of the API (%v): run go test ./server -run %s -update, and go generate ./server", path, err, t.Name())
	}
}

// strippedSpec is a document without what the generator changes in the one that it keeps.
func strippedSpec(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "operationId")
			delete(v, "parameters")
			for _, own := range v {
				strip(own)
			}
		case []any:
			for _, own := range v {
				strip(own)
			}
		}
	}
	strip(v)
	return v
}

// The table of docs/server.md has each operation, with who may use it.
func TestDocs_EachOperationIsListed(t *testing.T) {
	page, err := os.ReadFile("../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	patterns := server.Patterns()
	for _, pattern := range patterns {
		who := "viewer"
		switch {
		case pattern == "POST /v1/session":
			who = "page"
		case strings.HasPrefix(pattern, "POST"):
			who = "owner"
		}
		if !strings.Contains(string(page), "| `"+pattern+"` | "+who+" |") {
			t.Errorf("docs/server.md lacks %s, for the %s", pattern, who)
		}
	}
	if rows := strings.Count(string(page), "\n| `GET /v1/") + strings.Count(string(page), "\n| `POST /v1/"); rows != len(patterns) {
		t.Errorf("docs/server.md has %d operations, and the API %d", rows, len(patterns))
	}
}
