"""Part of the vendor's compiler package that harnesses import."""
