// SPDX-License-Identifier: Apache-2.0

package server

// Patterns are those of the operations of the API.
func Patterns() (all []string) {
	for _, r := range apiRoutes {
		all = append(all, r.pattern)
	}
	return all
}

var OpenAPI = openAPI
