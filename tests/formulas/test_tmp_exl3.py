import csv
from tests.formulas.test_exllamav3_oracle import counted, ASKED
def test_print(counted, footprints, book):
    for row in counted:
        t=row['told']
        if t['total_bytes'] is None: print(row['model'],t['unknown_reason']); continue
        print(f"{row['model'][:40]:40} {row['bits']:4} {row['kv_bits']:4} w {t['weights_bytes']/row['weights_bytes']-1:+.4%} c {(t['kv_cache_bytes']+t['kv_padding_bytes'])/row['cache_bytes']-1:+.3%} a {t['activations_bytes']/(row['peak_bytes']-row['left_bytes'])-1:+.2%} ({(row['peak_bytes']-row['left_bytes'])/1e6:.0f} MB) total {t['total_bytes']/2**20:.0f} reserved {row['reserved_bytes']/2**20:.0f} peak {row['peak_bytes']/2**20:.0f} band {t['error_band']:.3f} over {t['overhead_bytes']/2**20:.0f}")
    G="google/gemma-3-27b-it"; N="nvidia/Llama-3_3-Nemotron-Super-49B-v1"; Q="Qwen/Qwen2.5-32B-Instruct"
    held=[(N,'exl3-3bpw',c,'fp16',v) for c,v in ((2048,19162),(12288,21342),(20480,23094),(21504,23194),(22528,None))]
    held+=[(G,'exl3-5bpw',c,'exl3-6bit',v) for c,v in ((2048,17404),(12288,19404),(22528,21660),(30720,23238),(31744,None))]
    held+=[(Q,'exl3-4bpw',8192,k,v) for k,v in (('fp16',18665),('exl3-4bit',16827))]
    rows=footprints([ASKED|{'model_id':m,'dtype_id':d,'context_tokens':c,'kv_dtype_id':k} for m,d,c,k,v in held])
    for h,r in zip(held,rows):
        if r['total_bytes'] is None: print(h,r['unknown_reason']); continue
        print(h, 'total MiB %.0f' % (r['total_bytes']/2**20), {k:round(r[k]/2**20) for k in ('weights_bytes','kv_cache_bytes','kv_padding_bytes','activations_bytes','overhead_bytes')}, 'without margin/slack %.0f'%((r['total_bytes'])/2**20-256-128), r['error_band'])
    for d in ('2','3','4','5','6','8'):
        r,=footprints([ASKED|{'model_id':G,'dtype_id':f'exl3-{d}bpw'}]); print(d, r['weights_bytes']/2**30)
    for q in ("FROM fits_on('rtx-3090','meta-llama/Llama-3.1-8B-Instruct',dtype_id:='exl3-4bpw')","FROM fits_on('rtx-3090','meta-llama/Llama-3.1-8B-Instruct',dtype_id:='exl3-4bpw',program:='tabbyapi')","FROM fits_on('rtx-2080-ti','meta-llama/Llama-3.1-8B-Instruct',dtype_id:='exl3-4bpw')"):
        try:
            x=book.execute(q); names=[c[0] for c in x.description]
            for r in x.fetchall(): d=dict(zip(names,r)); print({k:d.get(k) for k in ('verdict','total_bytes','capacity_bytes','context_tokens','holds_for','unknown_reason','engine_setting')})
        except Exception as e: print(q,str(e)[:300])
