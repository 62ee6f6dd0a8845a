// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/schema"
)

// object is a JSON object of the document. Its names are sorted.
type object = map[string]any

// openAPI is the description of the API as an OpenAPI 3.1 document. It is made of the routes and their Go types.
func openAPI() (json.RawMessage, error) {
	paths, schemas := object{}, object{}
	named := func(t reflect.Type) (object, error) {
		name := t.Name()
		name = strings.ToUpper(name[:1]) + name[1:]
		if _, known := schemas[name]; !known {
			s, err := schema.ForType(t)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			schemas[name] = s
		}
		return object{"$ref": "#/components/schemas/" + name}, nil
	}
	trouble, err := named(reflect.TypeFor[Problem]())
	if err != nil {
		return nil, err
	}
	refusal := func(status int) object {
		of := object{"description": http.StatusText(status), "content": object{"application/problem+json": object{"schema": trouble}}}
		if status == http.StatusTooManyRequests {
			of["headers"] = object{"Retry-After": object{"description": "Seconds until the request may be made again.", "schema": object{"type": "integer"}}}
		}
		return of
	}
	for _, r := range apiRoutes {
		method, path, _ := strings.Cut(r.pattern, " ")
		answer := object{"description": http.StatusText(r.status)}
		switch {
		case r.answer != nil:
			s, err := named(r.answer)
			if err != nil {
				return nil, err
			}
			answer["content"] = object{"application/json": object{"schema": s}}
		case len(r.media) > 0:
			content := object{}
			for _, media := range r.media {
				content[media] = object{"schema": object{"type": "string"}}
			}
			answer["content"] = content
		}
		if r.status == http.StatusCreated {
			answer["headers"] = object{"Location": object{"description": "The path of the run.", "schema": object{"type": "string"}}}
		}
		responses := object{strconv.Itoa(r.status): answer}
		statuses := append([]int{400, 403, 414, 421, 429, 431, 500}, r.refuses...)
		if r.needs != anyone {
			statuses = append(statuses, 401)
		}
		if r.body != nil {
			statuses = append(statuses, 408, 413, 415)
		}
		if strings.Contains(path, "{") || path == "/v1/compare" {
			statuses = append(statuses, 404)
		}
		for _, status := range statuses {
			responses[strconv.Itoa(status)] = refusal(status)
		}
		operation := object{"operationId": r.id, "summary": r.about, "responses": responses}
		if params := r.parameters(path); len(params) > 0 {
			operation["parameters"] = params
		}
		switch {
		case r.body != nil:
			s, err := named(r.body)
			if err != nil {
				return nil, err
			}
			operation["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": s, "example": r.example}}}
		case path == "/v1/bundles":
			operation["requestBody"] = object{"required": true, "content": object{"application/zip": object{"schema": object{"type": "string"}}}}
		}
		if r.needs == anyone {
			operation["security"] = []any{}
		}
		of, _ := paths[path].(object)
		if of == nil {
			of = object{}
			paths[path] = of
		}
		of[strings.ToLower(method)] = operation
	}
	return plainjson.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Drover", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Runs of coding agents: list, follow, answer, stop, continue and start them.",
		},
		"servers":  []any{object{"url": "http://127.0.0.1:7070"}},
		"paths":    paths,
		"security": []any{object{"token": []any{}}, object{"cookie": []any{}, "secret": []any{}}},
		"components": object{
			"schemas": schemas,
			"securitySchemes": object{
				"token":  object{"type": "http", "scheme": "bearer", "description": "The owner's or a viewer's token, for programs."},
				"cookie": object{"type": "apiKey", "in": "cookie", "name": "drover_7070", "description": "The page's, for which it traded a token. The name has the port."},
				"secret": object{"type": "apiKey", "in": "header", "name": secretHeader, "description": "The page's second secret."},
			},
		},
	})
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// parameters are those of the path and of the query.
func (r *route) parameters(path string) (all []any) {
	about := map[string]string{"run": "The id of a run, or the beginning of one.", "question": "The id of a question."}
	for _, found := range inPath.FindAllStringSubmatch(path, -1) {
		all = append(all, object{"name": found[1], "in": "path", "required": true, "description": about[found[1]], "schema": object{"type": "string"}})
	}
	for _, p := range r.query {
		form := object{"type": p.kind}
		if p.kind == "date-time" {
			form = object{"type": "string", "format": p.kind}
		}
		all = append(all, object{"name": p.name, "in": "query", "required": path == "/v1/compare", "description": p.about, "schema": form, "example": p.example})
	}
	return all
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	text, err := openAPI()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // no client is left
	return nil
}
