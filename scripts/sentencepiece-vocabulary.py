#!/usr/bin/env python3
"""Makes crates/exmy-lab/tests/lab/sentencepiece.json of a TEXT: a small SentencePiece vocabulary with scores and
kinds, as GGUF files of Llama 1 and 2 and of Mistral have them, and the tokens of some texts.

    pip install sentencepiece && python scripts/sentencepiece-vocabulary.py tinyshakespeare.txt
"""
import json, pathlib, sys, tempfile
import sentencepiece

TEXTS = ["First Citizen:\nBefore we proceed any further, hear me speak.\n", " leading and  double   spaces ",
    "ünïcödé 日本語 🙂 и кириллица", "1234 and 5,678.9", "", "a", "\n\n\ttabs\tand\r\nlines",
    "the the the theatre thee thou art", "▁ is a character", "don't WON'T Can't", "x" * 40, "noo nooo ooooh"]
with tempfile.TemporaryDirectory() as folder:
    sentencepiece.SentencePieceTrainer.train(input=sys.argv[1], model_prefix=folder + "/m", model_type="bpe",
        vocab_size=512, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        character_coverage=0.9999, split_digits=True, allow_whitespace_only_pieces=True,
        max_sentencepiece_length=10, input_sentence_size=4000, shuffle_input_sentence=False)
    model = sentencepiece.SentencePieceProcessor(model_file=folder + "/m.model")
ids = range(model.get_piece_size())
kind = lambda i: 2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1
data = dict(pieces=[model.id_to_piece(i) for i in ids], scores=[model.get_score(i) for i in ids],
    kinds=[kind(i) for i in ids], texts=[[text, model.encode(text)] for text in TEXTS])
path = pathlib.Path(__file__).parent.parent / "crates/exmy-lab/tests/lab/sentencepiece.json"
path.write_text(json.dumps(data, ensure_ascii=False) + "\n")
