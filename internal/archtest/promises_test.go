package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promise is a sentence of the design of credentials and signatures, and the tests that check it,
// as folder and name.
type promise struct {
	says  string
	tests []string
}

// credentialPromises returns the promises about policies, attacks on locations, and signatures.
func credentialPromises() []promise {
	return []promise{
		// Policies.
		{"the session is named after the caller, in 64 characters", []string{"storage/s3 TestAssumeRoleRequest"}},
		{"the policy of a reader and of a writer, byte for byte", []string{"storage/s3 TestPolicies"}},
		{"a writer cannot touch the catalog's own files", []string{"storage/s3 TestVending", "storage/s3 TestPolicies"}},
		{"every resource and prefix ends in a slash before its star", []string{"storage/s3 FuzzPolicy", "storage/s3 TestVending"}},
		{"stars, dollars and question marks reach nothing else", []string{"storage/s3 TestPolicyRefuses", "storage/s3 TestVending"}},
		{"characters that no policy can hold are refused", []string{"storage/s3 TestPolicyRefuses"}},
		{"the present location always, earlier ones while they fit", []string{"storage/s3 TestPolicyHasRoom"}},
		{"a policy that is too long is tried with the present location alone", []string{"storage/s3 TestAssumeRoleAnswers"}},
		{"no policy is without a resource, no key without a session", []string{"storage/s3 FuzzPolicy", "storage/s3 TestAssumeRoleAnswers"}},
		{"what cannot be vended is signed, or the answer says why not", []string{"catalog/vending TestNoCredential", "rest TestLoadAnswersSigning"}},
		{"a server that is away is no refusal", []string{"storage/s3 TestAssumeRoleAnswers", "catalog/vending TestNoCredential"}},
		{"a server that does not enforce policies vends nothing", []string{"storage/s3 TestProbeVendingFindsLooseServers",
			"storage/s3 TestProbeVendingFindsSeaweedFS", "catalog/vending TestWarehouseIsProbed"}},
		// Attacks on locations.
		{"a new table where another one left files", []string{"catalog/vending TestCredentialIsOfTheClaims", "catalog/vending TestTakingOverTakesDrop"}},
		{"a location over what a dropped table left", []string{"catalog/vending TestTakingOverTakesDrop", "catalog/vending TestClaimPassesWhenCredentialsHaveEnded",
			"catalog/vending TestClaimOfWhatIsGonePasses", "catalog/vending TestRegisterOverKeepsClaims"}},
		{"a location of the client's own takes locate", []string{"rest TestAccessMatrix"}},
		{"another's place by set-location or by a path property", []string{"catalog/vending TestPathPropertiesLieWithinClaims", "rest TestAccessMatrix"}},
		{"a registered file that names others' files", []string{"catalog/vending TestForgedFileWidensNothing"}},
		{"a register of another's dropped table-uuid", []string{"rest TestAccessMatrix"}},
		{"two spellings of one place", []string{"storage FuzzNormalise"}},
		{"a staged table, and then another location", []string{"catalog/vending TestStagedAtAnothersClaim"}},
		{"each credential of a staged table reads the claims first", []string{"catalog/vending TestStagedAtAnothersClaim"}},
		{"a token of a staged table is for its caller and its table", []string{"identity TestStageTokens", "rest TestStagedAccess"}},
		{"a token of a staged table shows nobody who somebody is", []string{"identity TestStageTokenIsForNothingElse"}},
		// Signatures.
		{"what is signed, and no other operation, header or place", []string{"storage/s3 TestSignable", "storage/s3 TestUnsignable", "storage/s3 FuzzSign"}},
		{"writes are signed for writers", []string{"storage/s3 TestReadersSignNoWrites", "catalog/vending TestDelegationsByPrivilege"}},
		{"what is signed is within the table's claims", []string{"storage/s3 TestSigningLookAlikes", "catalog/vending TestSign"}},
		{"a signed request with one byte changed is refused", []string{"storage/s3 TestSignedCalls"}},
		{"what a server overlooks of a signed request is not signed", []string{"storage/s3 TestProbeSigningFindsWhatIsOverlooked",
			"storage/s3 TestSeaweedFSIsSigned", "storage/s3 TestSignFindsOut"}},
		{"a server that is unfit has nothing signed", []string{"storage/s3 TestProbeSigning", "catalog/vending TestWarehouseIsProbed"}},
		{"a bucket has one place in an address", []string{"storage/s3 TestOneHostStyle", "storage/s3 TestUnsignable"}},
		{"only the added headers are answered, and nobody keeps them", []string{"rest TestSignRequest"}},
		{"a request that is malformed is 400, one that is not ours 403", []string{"rest TestSignRequest", "catalog/vending TestSign"}},
	}
}

// TestPromisesHaveTests looks up the tests of credentialPromises.
func TestPromisesHaveTests(t *testing.T) {
	t.Parallel()
	found := make(map[string]string) // the texts of the tests of a folder
	for _, p := range credentialPromises() {
		if len(p.tests) == 0 {
			t.Errorf("nothing shows that %s", p.says)
		}
		for _, test := range p.tests {
			folder, name, _ := strings.Cut(test, " ")
			if _, read := found[folder]; !read {
				found[folder] = testsIn(t, filepath.Join("..", "..", folder))
			}
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(found[folder]) {
				t.Errorf("%s: there is no test %s in %s", p.says, name, folder)
			}
		}
	}
}

// testsIn returns the texts of the test files in a folder.
func testsIn(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
