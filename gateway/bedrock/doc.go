// SPDX-License-Identifier: Apache-2.0

// Package bedrock is the upstream of Amazon Bedrock: it signs the requests of an agent whose cell knows no credential. Only
// programs that import it link the AWS SDK; importing it makes it known to package gateway as "bedrock".
//
// Promises:
//
//   - Only the sources in [Options] are read: the environment through Lookup, files in ConfigDir. With
//     both given, neither the process environment nor the home directory supplies a credential.
//   - Credentials are looked for, in this order: AWS_BEARER_TOKEN_BEDROCK; the profile that Options
//     name; the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; a web
//     identity (AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE); the profile that AWS_PROFILE names, or
//     "default", with its keys, roles, SSO login or program; the endpoint of a container; the
//     instance profile.
//   - [New] gets credentials once, so that a run without any fails before it starts. They are
//     renewed before they expire. When Bedrock reports that they have expired, the upstream looks for
//     them again and sends the request once more.
//   - Only calls of models and lists of them are signed. Other requests of an agent are refused,
//     even if the credential allows them.
//   - Answers pass unbuffered. Requests are read whole, because a signature covers their content.
package bedrock
