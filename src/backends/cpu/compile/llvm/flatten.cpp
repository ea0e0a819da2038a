// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/flatten.h"

#include <llvm/Object/ELFObjectFile.h>

#include <map>

#include "backends/cpu/compile/llvm/relocate.h"
#include "support/error.h"

namespace ingot::core::cpu {

namespace {

using llvm::object::ELF64LEObjectFile;

template <typename T>
T checked(llvm::Expected<T> value, const char* what) {
  if (value) return std::move(*value);
  throw InternalError(std::string(what) + ": " + llvm::toString(value.takeError()));
}

struct Flattener {
  const ELF64LEObjectFile& object;
  std::vector<std::byte> code;
  std::map<uint64_t, uint64_t> places;  // section index -> offset in `code`

  void append(const llvm::object::SectionRef& section) {
    llvm::StringRef bytes = checked(section.getContents(), "section");
    uint64_t alignment = std::max<uint64_t>(section.getAlignment().value(), 1);
    code.resize((code.size() + alignment - 1) / alignment * alignment);
    places[section.getIndex()] = code.size();
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    code.insert(code.end(), data, data + bytes.size());
  }

  void append_sections() {
    for (bool text : {true, false}) {
      for (const llvm::object::ELFSectionRef section : object.sections()) {
        bool allocated = section.getFlags() & llvm::ELF::SHF_ALLOC;
        if (!allocated || section.getSize() == 0 || section.isText() != text) continue;
        invariant(!(section.getFlags() & llvm::ELF::SHF_WRITE), "generated code has writable data");
        append(section);
      }
    }
  }

  void relocate(const llvm::object::ELFRelocationRef& relocation, uint64_t base) {
    auto symbol = relocation.getSymbol();
    auto section = checked(symbol->getSection(), "symbol");
    std::string name = checked(symbol->getName(), "symbol").str();
    invariant(section != object.section_end(), "generated code calls " + name + ", which it does not define");
    uint64_t target = places.at(section->getIndex()) + checked(symbol->getValue(), "symbol");
    int64_t addend = checked(relocation.getAddend(), "addend");
    cpu::relocate(code, object.getELFFile().getHeader().e_machine, relocation.getType(),
                  base + relocation.getOffset(), static_cast<int64_t>(target) + addend);
  }

  void apply_relocations() {
    for (const llvm::object::SectionRef& section : object.sections()) {
      auto relocated = checked(section.getRelocatedSection(), "section");
      if (relocated == object.section_end() || !places.contains(relocated->getIndex())) continue;
      uint64_t base = places.at(relocated->getIndex());
      for (const llvm::object::ELFRelocationRef relocation : section.relocations())
        relocate(relocation, base);
    }
  }
};

}  // namespace

std::vector<std::byte> flatten(std::span<const char> object) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "kernel");
  auto elf = checked(ELF64LEObjectFile::create(buffer), "object");
  Flattener flattener{elf, {}, {}};
  flattener.append_sections();
  flattener.apply_relocations();
  return std::move(flattener.code);
}

}  // namespace ingot::core::cpu
