package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"evenkeel/c/tables"
)

const head = "/* Made by c/gen from c/tables: do not edit. */\n"

// body is one wrapper: begin, forward, look, end. It stands once for all
// languages; only the expressions differ.
// A call that leaves nothing to be noted after it has a short way besides: the
// body is then a function of its own, for the calls that are timed.
var body = template.Must(template.New("body").Parse(`{{define "wrapper"}}
{{- if .Quick}}
static __attribute__((noinline)) {{.Returns}} {{.Symbol}}_whole({{.Declaration}}, uint64_t site, uintptr_t frame)
{{template "body" .}}
EK_EXPORT {{.Returns}} {{.Symbol}}({{.Declaration}})
{
	uint64_t site = EK_SITE;
	{{.Result}}
	if (EK_UNLIKELY(!ek_quick(EK_{{.Name}}, {{.Collective}}, {{.Handle}}, {{.Peer}}, site, EK_FRAME)))
		return {{.Symbol}}_whole({{.Arguments}}, site, EK_FRAME);
	{{.Forward}};
	ek_quick_end();
	return{{.Value}};
}
{{else}}
EK_EXPORT {{.Returns}} {{.Symbol}}({{.Declaration}})
{{template "body" .}}
{{- end}}{{end}}{{define "body"}}{
	struct ek_call call;
	{{.Result}}
	if (!ek_begin(&call, EK_{{.Name}}, {{.Collective}}, {{.Handle}}, {{.Peer}}, {{if .Quick}}site, frame{{else}}EK_SITE, EK_FRAME{{end}})) {
		{{.Forward}};
		return{{.Value}};
	}
{{- if .OtherPeer}}
	ek_peer(&call, 1, {{.OtherPeer}});
{{- end}}
{{- if .Requests}}
	ek_requests_{{.Suffix}}(&call, {{.Count}}, {{.Requests}});
{{- end}}
{{- if .DropComm}}
	MPI_Comm dropped = {{.DropComm}};
{{- end}}
{{- if .Drop}}
	uint64_t dropped = {{.Drop}};
{{- end}}
{{- if .Status}}
	MPI_Status own;
	if ({{.FromAny}} && ek_ignored_{{.Suffix}}({{.Status}}))
		{{.Status}} = (void *)&own; /* to learn the sender */
{{- end}}
	{{.Forward}};
	if (ek_leave(&call)) {
{{- if .Statuses}}
		if ({{.Succeeded}})
			ek_sources_{{.Suffix}}(&call, {{.Statuses}});
{{- end}}
{{- if .Source}}
		if ({{.Succeeded}})
			ek_source_{{.Suffix}}(&call, {{.SourcePlace}}, {{.Source}}, {{.Status}});
{{- end}}
		ek_record(&call, {{if .Size}}{{.Succeeded}}{{if .Significant}} && {{.Significant}}{{end}} ? {{.Size}} : {{end}}0, {{.Tag}});
	}
{{- if .Notes}}
	if ({{.Succeeded}}) {
{{- if .Posted}}
		ek_posted(&call, {{.Posted}}{{if .Collective}}, true{{else}}, false{{end}});
{{- end}}
{{- if .Dup}}
		ek_comm_dup(&call, {{.NewComm}});
{{- else if .NewComm}}
		ek_comm_made({{.Maker}}, {{.NewComm}});
{{- end}}
{{- if .Bind}}
		ek_bind(&call, {{.Bind}}, {{.BindFile}});
{{- end}}
{{- if .Named}}
		ek_comm_named({{.Named}});
{{- end}}
{{- if .DropComm}}
		ek_comm_gone(&call, dropped);
{{- end}}
{{- if .Drop}}
		ek_unbind(&call, dropped);
{{- end}}
	}
{{- end}}
	ek_end(&call);
	return{{.Value}};
}
{{end}}`))

// wrapper is what the body template is given.
type wrapper struct {
	look
	Symbol      string
	Returns     string // its type
	Declaration string // of the parameters
	Arguments   string
	Result      string // declaration of the result, if the language has one
	Forward     string // the call of the next definition
	Value       string // what follows `return`
	Succeeded   string // condition
}

// Notes says whether something is to be noted after a call that succeeded.
func (w wrapper) Notes() bool {
	return w.Posted != "" || w.NewComm != "" || w.Bind != "" || w.Named != "" || w.Drop != "" || w.DropComm != ""
}

// Quick says whether a call that is not timed needs nothing but to be counted.
func (w wrapper) Quick() bool {
	return !w.Notes() && w.Requests == "" && w.OtherPeer == ""
}

func wrappersC(b *bytes.Buffer, functions []tables.Function) error {
	b.WriteString(head + "#include \"record.h\"\n")
	for _, f := range functions {
		if f.Class == "hand" || f.Own {
			continue
		}
		arguments := join(f.Params, func(p tables.Param) string { return p.Name })
		table := "ek_next"
		if f.Fast != "" {
			table = "ek_way"
		}
		w := wrapper{look: lookAt(f, flavourC), Symbol: f.Name, Returns: "int",
			Declaration: declareC(f.Params), Arguments: arguments,
			Result:    "int result;",
			Forward:   fmt.Sprintf("result = %s.%s(%s)", table, f.Name, arguments),
			Value:     " result",
			Succeeded: "result == MPI_SUCCESS"}
		b.WriteString(ifThere(f))
		if err := body.ExecuteTemplate(b, "wrapper", w); err != nil {
			return err
		}
		b.WriteString(endIfThere(f))
	}
	return nil
}

// ifThere and endIfThere stand around what is compiled only where MPI has the function: Open MPI 5 has those
// of MPI 4, although it calls itself MPI 3.1.
func ifThere(f tables.Function) string {
	if f.Newer {
		return "\n#if OMPI_MAJOR_VERSION >= 5 || MPI_VERSION >= 4\n"
	}
	return ""
}

func endIfThere(f tables.Function) string {
	if f.Newer {
		return "#endif\n"
	}
	return ""
}

// declareC writes parameters as C declares them.
func declareC(params []tables.Param) string {
	if len(params) == 0 {
		return "void"
	}
	return join(params, func(p tables.Param) string {
		if t, ok := strings.CutSuffix(p.Type, "[]"); ok {
			return t + " " + p.Name + "[]"
		}
		if strings.HasSuffix(p.Type, "*") {
			return p.Type + p.Name
		}
		return p.Type + " " + p.Name
	})
}

// declareFortran writes parameters as a Fortran compiler passes them: all by
// reference, the error code after them, and the lengths of characters last.
func declareFortran(params []tables.Param) (declaration, arguments string) {
	var d, a []string
	for _, p := range params {
		t := "void *"
		if fortranInteger(p) {
			t = "MPI_Fint *"
		}
		d = append(d, t+p.Name)
		a = append(a, p.Name)
	}
	d, a = append(d, "MPI_Fint *ierror"), append(a, "ierror")
	for _, p := range params {
		if strings.Contains(p.Type, "char") {
			d, a = append(d, "size_t length_of_"+p.Name), append(a, "length_of_"+p.Name)
		}
	}
	return strings.Join(d, ", "), strings.Join(a, ", ")
}

// fortranInteger says whether a wrapper may read the argument as INTEGER.
func fortranInteger(p tables.Param) bool {
	switch strings.TrimRight(p.Type, " *[]") {
	case "int", "MPI_Comm", "MPI_Win", "MPI_File", "MPI_Request", "MPI_Datatype", "MPI_Status":
		return true
	}
	return false
}

// fortranSymbols are the definitions of a function for Fortran: mpi_x_ (mpif.h
// and `use mpi`); where the module has one more for a TYPE(C_PTR), mpi_x_cptr_;
// and mpi_x_f08_ (`use mpi_f08`). All but the last have spellings besides.
func fortranSymbols(f tables.Function) (spelled []string, f08 string) {
	lower := strings.ToLower(f.Name)
	spelled = []string{lower + "_"}
	if _, ok := f.Param("baseptr"); ok {
		spelled = append(spelled, lower+"_cptr_")
	}
	return spelled, lower + "_f08_"
}

// wrappersFortran writes the Fortran definitions of each function.
func wrappersFortran(b *bytes.Buffer, functions []tables.Function) error {
	b.WriteString(head + "#include \"record.h\"\n")
	for _, f := range functions {
		if f.Class == "hand" || f.Own {
			continue
		}
		b.WriteString(ifThere(f))
		declaration, arguments := declareFortran(f.Params)
		if f.Fast != "" {
			fromFortran(b, f, declaration)
		}
		spelled, f08 := fortranSymbols(f)
		for _, symbol := range append(spelled, f08) {
			w := wrapper{look: lookAt(f, flavourFortran), Symbol: symbol, Returns: "void",
				Declaration: declaration, Arguments: arguments,
				Forward:   forwardFortran(f, symbol, arguments),
				Succeeded: "ek_succeeded(ierror)"}
			if err := body.ExecuteTemplate(b, "wrapper", w); err != nil {
				return err
			}
		}
		for _, symbol := range spelled {
			bare := strings.TrimSuffix(symbol, "_")
			for _, alias := range []string{bare, bare + "__", strings.ToUpper(bare)} {
				fmt.Fprintf(b, "EK_EXPORT void %s(%s) __attribute__((alias(\"%s\")));\n", alias, declaration, symbol)
			}
		}
		b.WriteString(endIfThere(f))
	}
	return nil
}

// forwardFortran is the call of the next definition, or of what replaces it.
func forwardFortran(f tables.Function, symbol, arguments string) string {
	next := fmt.Sprintf("EK_NEXT(%s)(%s)", symbol, arguments)
	if f.Fast == "" {
		return next
	}
	return fmt.Sprintf("if (ek_way.%[1]s == ek_next.%[1]s) %[2]s; else %[1]s_from_fortran(%[3]s)", f.Name, next, arguments)
}

// fromFortran writes the function by which Fortran reaches what replaces a C
// function, with Fortran's handles and constants turned into C's.
func fromFortran(b *bytes.Buffer, f tables.Function, declaration string) {
	var before, after string
	arguments := join(f.Params, func(p tables.Param) string {
		switch strings.TrimSuffix(strings.TrimPrefix(p.Type, "const "), " *") {
		case "void":
			return "ek_buffer_f(" + p.Name + ")"
		case "MPI_Comm":
			return "ek_comm_f2c(*" + p.Name + ")"
		case "MPI_Datatype":
			return "ek_mpi.Type_f2c(*" + p.Name + ")"
		case "MPI_Request":
			before += "\tMPI_Request made;\n"
			after += "\tif (result == MPI_SUCCESS)\n\t\t*" + p.Name + " = ek_mpi.Request_c2f(made);\n"
			return "&made"
		}
		return "*" + p.Name
	})
	fmt.Fprintf(b, "\nstatic void %s_from_fortran(%s)\n{\n%s\tint result = ek_way.%s(%s);\n%s\tif (ierror)\n\t\t*ierror = result;\n}\n",
		f.Name, declaration, before, f.Name, arguments, after)
}

// functionsHeader writes the numbers and names of the functions, and the type
// of the table of next definitions.
func functionsHeader(b *bytes.Buffer, functions []tables.Function) error {
	b.WriteString(head + "#ifndef EK_FUNCTIONS_H\n#define EK_FUNCTIONS_H\n\n#include <mpi.h>\n#include <stdbool.h>\n\nenum ek_function {\n")
	for i, f := range functions {
		fmt.Fprintf(b, "\tEK_%s = %d,\n", f.Identifier(), i)
	}
	fmt.Fprintf(b, "\tEK_FUNCTIONS = %d\n};\n\n#define EK_TABLE_HASH 0x%08xu\n\n", len(functions), tables.Hash(functions))
	b.WriteString("/* The next definition of each symbol behind ours: MPI's, or another tool's. */\nstruct ek_next {\n")
	for _, f := range functions {
		if f.Own {
			continue
		}
		if f.Name == "MPI_Pcontrol" {
			b.WriteString("\tint (*MPI_Pcontrol)(const int level, ...);\n\tvoid (*mpi_pcontrol_)(MPI_Fint *level);\n\tvoid (*mpi_pcontrol_f08_)(MPI_Fint *level);\n")
			continue
		}
		declaration, _ := declareFortran(f.Params)
		if f.Name == "MPI_Init" {
			declaration = "MPI_Fint *ierror" // Fortran has no argc and argv to pass
		}
		if f.Name == "MPI_Init_thread" {
			declaration = "MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror"
		}
		fmt.Fprintf(b, "\tint (*%s)(%s);\n", f.Name, declareC(f.Params))
		spelled, f08 := fortranSymbols(f)
		for _, symbol := range append(spelled, f08) {
			fmt.Fprintf(b, "\tvoid (*%s)(%s);\n", symbol, declaration)
		}
	}
	b.WriteString("};\n\nextern struct ek_next ek_next;\n\n/* What our wrappers of some functions forward to instead: the next definition,\n * or what evenkeel does in its place. */\nstruct ek_way {\n")
	for _, f := range functions {
		if f.Fast != "" {
			fmt.Fprintf(b, "\tint (*%s)(%s);\n", f.Name, declareC(f.Params))
		}
	}
	b.WriteString("};\n\nextern struct ek_way ek_way __attribute__((visibility(\"hidden\"))); /* in reach without a table */\nvoid ek_way_plain(void); /* all to the next definition */\n\nextern const bool ek_collective[EK_FUNCTIONS]; /* counts as an operation on its communicator */\nextern const char *const ek_own_names[EK_FUNCTIONS]; /* of evenkeel's own; null: MPI's */\nextern const bool ek_blocks[EK_FUNCTIONS]; /* of MPI's: returns when something has happened elsewhere */\n\n#endif\n")
	return nil
}

// nextTable writes the list by which the table of next definitions is filled.
func nextTable(b *bytes.Buffer, functions []tables.Function) error {
	b.WriteString(head + "#include \"next.h\"\n\nstruct ek_next ek_next;\n\nconst struct ek_next_symbol ek_next_symbols[] = {\n")
	for _, f := range functions {
		if f.Own {
			continue
		}
		spelled, f08 := fortranSymbols(f)
		for _, symbol := range append(spelled, f.Name, f08) {
			fmt.Fprintf(b, "\t{\"%s\", (void **)&ek_next.%s},\n", symbol, symbol)
		}
	}
	b.WriteString("\t{0, 0}\n};\n\nstruct ek_way ek_way;\n\nvoid ek_way_plain(void)\n{\n")
	for _, f := range functions {
		if f.Fast != "" {
			fmt.Fprintf(b, "\tek_way.%[1]s = ek_next.%[1]s;\n", f.Name)
		}
	}
	b.WriteString("}\n\nconst bool ek_collective[EK_FUNCTIONS] = {\n")
	for _, f := range functions {
		if collectiveClass[f.Class] {
			fmt.Fprintf(b, "\t[EK_%s] = true,\n", f.Identifier())
		}
	}
	b.WriteString("};\n\nconst char *const ek_own_names[EK_FUNCTIONS] = {\n")
	for _, f := range functions {
		if f.Own {
			fmt.Fprintf(b, "\t[EK_%s] = \"%s\",\n", f.Identifier(), f.Name)
		}
	}
	b.WriteString("};\n\nconst bool ek_blocks[EK_FUNCTIONS] = {\n")
	for _, f := range functions {
		if !returnsAtOnce[f.Class] && !f.Own {
			fmt.Fprintf(b, "\t[EK_%s] = true,\n", f.Name)
		}
	}
	b.WriteString("};\n")
	return nil
}

func join(params []tables.Param, text func(tables.Param) string) string {
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = text(p)
	}
	return strings.Join(parts, ", ")
}
