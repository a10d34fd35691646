// An oracle for the generated cases: LLVM's FileCheck library behind a pipe, some hundred times as fast as its program.
//
// Build it with the static libraries of the distribution's llvm-NN-dev (-DOLD for LLVM 18 and older), and name what was built in
// HOTSTART_FILECHECK_ORACLES for `cargo test -p hotstart-filecheck --test against_filecheck`:
//
//   g++ -std=c++17 -O1 -fno-rtti -fno-exceptions oracle.cpp -o oracle19 -I/usr/lib/llvm-19/include -D_GNU_SOURCE
//       -L/usr/lib/llvm-19/lib -lLLVMFileCheck -lLLVMSupport -lLLVMDemangle -lpthread -ldl -lz -lzstd -ltinfo -lm
//
// It reads cases (number of arguments, arguments, check file, input, each text with its length before it, as 32 bits) and answers each with
// a byte: 1 if FileCheck passes. It knows the options that the generator uses. What the library ends the process for, is no pass.
#include "llvm/ADT/SmallString.h"
#include "llvm/FileCheck/FileCheck.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

static bool readText(std::string &Text) {
  uint32_t Length;
  if (fread(&Length, 4, 1, stdin) != 1)
    return false;
  Text.resize(Length);
  return Length == 0 || fread(&Text[0], 1, Length, stdin) == Length;
}

static void split(const std::string &List, std::vector<StringRef> &Out, std::vector<std::string> &Store) {
  SmallVector<StringRef, 4> Parts;
  StringRef(List).split(Parts, ',');
  for (StringRef Part : Parts)
    Store.push_back(Part.str());
  for (size_t I = Store.size() - Parts.size(); I < Store.size(); ++I)
    Out.push_back(Store[I]);
}

static bool passes(const std::vector<std::string> &Args, const std::string &Check, const std::string &Input) {
  FileCheckRequest Req{};
  std::vector<std::string> Store;
  Store.reserve(1000);
  for (const std::string &Arg : Args) {
    StringRef Option = StringRef(Arg).ltrim('-');
    if (Arg == "check")
      continue;
    if (StringRef(Arg).substr(0, 2) == "-D") {
      Store.push_back(Arg.substr(2));
      Req.GlobalDefines.push_back(Store.back());
      continue;
    }
    auto Pair = Option.split('=');
    if (Pair.first == "check-prefixes" || Pair.first == "check-prefix")
      split(Pair.second.str(), Req.CheckPrefixes, Store);
    else if (Pair.first == "comment-prefixes")
      split(Pair.second.str(), Req.CommentPrefixes, Store);
    else if (Pair.first == "implicit-check-not") {
      Store.push_back(Pair.second.str());
      Req.ImplicitCheckNot.push_back(Store.back());
    } else if (Option == "match-full-lines")
      Req.MatchFullLines = true;
    else if (Option == "strict-whitespace")
      Req.NoCanonicalizeWhiteSpace = true;
    else if (Option == "ignore-case")
      Req.IgnoreCase = true;
    else if (Option == "enable-var-scope")
      Req.EnableVarScope = true;
    else if (Option == "allow-deprecated-dag-overlap")
      Req.AllowDeprecatedDagOverlap = true;
    else if (Option == "allow-unused-prefixes")
      Req.AllowUnusedPrefixes = true;
    else if (Option == "allow-empty")
      Req.AllowEmptyInput = true;
    else
      abort();
  }
  FileCheck FC(Req);
  if (!FC.ValidateCheckPrefixes())
    return false;
  SourceMgr SM;
  auto Buffer = [&](const std::string &Text, const char *Name, SmallString<4096> &Canonical) {
    auto Original = MemoryBuffer::getMemBufferCopy(Text, Name);
    StringRef Seen = FC.CanonicalizeFile(*Original, Canonical);
    SM.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(Seen, Name), SMLoc());
    return Seen;
  };
  SmallString<4096> CheckText, InputText;
  StringRef Checks = Buffer(Check, "check", CheckText);
  std::pair<unsigned, unsigned> Range;
#ifdef OLD
  Regex Prefixes = FC.buildCheckPrefixRegex();
  if (FC.readCheckFile(SM, Checks, Prefixes, &Range))
    return false;
#else
  if (FC.readCheckFile(SM, Checks, &Range))
    return false;
#endif
  if (Input.empty() && !Req.AllowEmptyInput)
    return false;
  std::vector<FileCheckDiag> Diags;
  return FC.checkInput(SM, Buffer(Input, "input", InputText), &Diags);
}

int main() {
  int Out = dup(1), Nowhere = open("/dev/null", O_WRONLY);
  dup2(Nowhere, 1);
  dup2(Nowhere, 2);
  uint32_t Count;
  while (fread(&Count, 4, 1, stdin) == 1) {
    std::vector<std::string> Args(Count);
    for (std::string &Arg : Args)
      if (!readText(Arg))
        return 0;
    std::string Check, Input;
    if (!readText(Check) || !readText(Input))
      return 0;
    char Answer = passes(Args, Check, Input) ? 1 : 0;
    if (write(Out, &Answer, 1) != 1)
      return 0;
  }
}
