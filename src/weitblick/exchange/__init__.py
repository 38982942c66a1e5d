"""Models from elsewhere and for elsewhere: Marian in; CTranslate2 and transformers out; the hub."""
