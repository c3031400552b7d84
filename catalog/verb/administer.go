package verb

// The verbs of those who manage who may do what.
const (
	ListPrincipals  Verb = "list-principals"
	LoadPrincipal   Verb = "load-principal"
	PutPrincipal    Verb = "put-principal"
	DeletePrincipal Verb = "delete-principal"
	CreateKey       Verb = "create-key"
	RotateKey       Verb = "rotate-key"
	WithdrawKey     Verb = "withdraw-key"
	ListRoles       Verb = "list-roles"
	LoadRole        Verb = "load-role"
	PutRole         Verb = "put-role"
	DeleteRole      Verb = "delete-role"
	ChangeMembers   Verb = "change-members"
	ListGrants      Verb = "list-grants"
	ChangeGrants    Verb = "change-grants"
	SetOwner        Verb = "set-owner"
	SetManaged      Verb = "set-managed"
	LoadAccess      Verb = "load-access"
	EnableAccess    Verb = "enable-access"
	ExplainAccess   Verb = "explain-access"
	CheckAccess     Verb = "check-access"
	ExportAccess    Verb = "export-access"
	LoadDecisions   Verb = "load-decisions"
)

// administering returns the rows of those verbs. Each is let in here: what a caller needs depends
// on the object and on what is granted, which catalog.Access knows.
func administering() []Row {
	reads := func(verb Verb, operation string) Row {
		return Row{Verb: verb, On: OnServer, Reads: true, Management: []string{operation}}
	}
	changes := func(verb Verb, operation string) Row {
		return Row{Verb: verb, On: OnServer, Keyed: true, Management: []string{operation}}
	}
	return []Row{
		reads(ListPrincipals, "listPrincipals"),
		reads(LoadPrincipal, "loadPrincipal"),
		changes(PutPrincipal, "putPrincipal"),
		changes(DeletePrincipal, "deletePrincipal"),
		changes(CreateKey, "createKey"),
		changes(RotateKey, "rotateKey"),
		changes(WithdrawKey, "withdrawKey"),
		reads(ListRoles, "listRoles"),
		reads(LoadRole, "loadRole"),
		changes(PutRole, "putRole"),
		changes(DeleteRole, "deleteRole"),
		changes(ChangeMembers, "changeMembers"),
		reads(ListGrants, "listGrants"),
		changes(ChangeGrants, "changeGrants"),
		changes(SetOwner, "setOwner"),
		changes(SetManaged, "setManaged"),
		reads(LoadAccess, "loadAccess"),
		changes(EnableAccess, "enableAccess"),
		reads(ExplainAccess, "explainAccess"),
		reads(CheckAccess, "checkAccess"),
		reads(ExportAccess, "exportAccess"),
		reads(LoadDecisions, "loadDecisions"),
	}
}
