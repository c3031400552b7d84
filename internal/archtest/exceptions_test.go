package archtest

// exceptionKey names a rule and the file (or folder) that may break it.
type exceptionKey struct{ rule, at string }

// exceptions returns the files and folders that may break a rule, each with the reason.
func exceptions() map[exceptionKey]string {
	return map[exceptionKey]string{
		{"context value", "identity/connection.go"}:             "net/http hands on what is known of a connection in no other way",
		{"context value", "identity/signin.go"}:                 "package oauth2 is told in no other way what sends its requests",
		{"context value", "internal/web/exchange.go"}:           "chi finds its own route context there, which spares a copy of the request",
		{"context value", "internal/web/probes.go"}:             "net/http hands on what is known of a connection in no other way",
		{"context value", "secrets/keyservice/google_token.go"}: "package oauth2 is told in no other way what sends its requests",
		{"context value", "storage/gcs/token.go"}:               "package oauth2 is told in no other way what sends its requests",
		{"skip", "storage/adls/vend_test.go"}:                   "nothing on a machine of tests stands in for an account in Azure",
		{"sql", "registry/postgres/horizon.go"}:                 "what keeps old rows has no other name; a server without it only lacks a metric",
		{"context field", "locks/hold.go"}:                      "a hold is what its context stands for: it ends when the locks are lost",
	}
}
